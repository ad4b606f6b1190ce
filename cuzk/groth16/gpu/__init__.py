"""A GPU as the machine that computes a proof; the card's kernels are in `kernels.gpu`.

Read in this order:

    card_plan, synthesis_plan   what takes how much of a card's memory, known without a card
    card_clock                  what the card took, stage by stage, and where the host waits for it
    points_on_card, ephemeral   where points come from: a parameter file, or their logarithms
    held_sections               or another card, which has them already
    synthesis                   variables, rows and scalars of each section
    full_scalars, sums          bits and numbers apart, over points that stay on the card
    streamed                    the same over points that only pass
    target                      all of it, in the order of a proof

Imports numba-cuda, but for the two plans.
"""
