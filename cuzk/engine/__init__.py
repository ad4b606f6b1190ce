"""Many proofs through one machine: jobs with priorities, partitions as units, devices that must not wait.

    submit -> pending -> preparers -> ready -> workers of devices -> proofs -> assembler -> answer

In reading order: `seam` (what is proven, seen from here), `settings`, `jobs` and `unit_queue` (jobs, runs,
units), `budget`, `leases`, `devices` (memory and places), `device_lock` and `turn` (who has a device),
`batches` (which runs go together), `placing` (what a worker does next), `board` with `runs` (the state),
`reception` (what callers do to it), `dispatcher` (what threads do), `threads`, `worker`, `switching` (how
soon they take turns), `events`, `recorder`, `status`, and `pipeline`, which puts it together.

Words: a *job* is a caller's handle, a *run* the work behind it, a *unit* one of its partitions; a *setup* is
a circuit's parameters, a *slot* their place on a device.

Locks: the board has one for all state, held for moments; the announcer's and a subscription's nest inside it,
in this order, and so do a job's and a device's mutex, under which nothing is called that locks. Whoever has
a device takes the board's lock as anybody else. Proving, preparing and recording happen under none of the
board's.

Imports nothing of ours but the servants: what a proof is, `seam` leaves to others.
"""
