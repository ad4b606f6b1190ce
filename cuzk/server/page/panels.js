// The panels: each shows its part of the state, in place.

const STAGE_WORDS = {
  pending: "to come", preparing: "in synthesis", ready: "ready", proving: "on a device", proved: "proven", dropped: "dropped",
};
const STATUS_WORDS = { COMPLETED: "proven", FAILED: "failed", TIMEOUT: "too late", CANCELLED: "called off" };
const PART_WORDS = {
  kernels: "kernels", call: "host part and lock", ready: "partition was ready", synthesis: "waiting for synthesis", nothing: "nothing to prove",
};
const THEIR_CAUSES = new Set(["input", "called off"]); // nothing is wrong here
const RECENTLY_MS = 15 * 60 * 1000;

class Panels {
  constructor(lanes) {
    this.lanes = lanes;
  }

  show(state) {
    this.state = state;
    this.ready();
    this.attention();
    this.figures();
    this.devices();
    this.jobs();
    this.memory();
    this.results();
    this.failures();
    this.incidents();
  }

  ago(at) {
    return age(this.state.now_ms - at);
  }

  wall(at) {
    return new Date(Date.now() - (this.state.now_ms - at));
  }

  time(at) {
    const made = element("time", "", clockTime(this.wall(at)));
    made.dateTime = this.wall(at).toISOString();
    made.title = this.wall(at).toLocaleString();
    return made;
  }

  // ---- the head ----

  ready() {
    const { not_ready, closing, uptime_s, version } = this.state;
    const [look, words] = closing ? ["warn", "draining"] : not_ready ? ["warn", "not ready"] : ["good", "ready"];
    attribute($("#ready"), "class", `chip ${look}`);
    say($("#ready .words"), words);
    say($("#uptime"), `up ${age(uptime_s * 1000)}`);
    say($("#version"), version);
    say($("#clock"), clockTime(new Date()));
  }

  attention() {
    const found = [...this.troubles()];
    this.isBad = found.some(([look]) => look === "bad");
    if (!found.length) found.push(["good", "✓", "Nothing needs attention."]);
    follow($("#attention ul"), found, ([, , words]) => words.replace(/[0-9]+/g, "#"),
      () => element("li", "", element("span", "sign"), element("span", "words")),
      (node, [look, sign, words]) => {
        attribute(node, "class", look);
        say(node.firstElementChild, sign);
        say(node.lastElementChild, words);
      });
  }

  * troubles() {
    const { not_ready, closing, devices, queue, failures, refused, incidents, now_ms } = this.state;
    for (const device of devices) {
      const wrong = incidents.filter((one) => one.what === "wrong proof" && one.device === device.name && now_ms - one.at_ms < RECENTLY_MS);
      if (wrong.length) yield ["warn", "!", `${device.name} made ${many(wrong.length, "wrong proof")} in the last 15 minutes; none was handed out.`];
      if (device.set_aside) yield ["bad", "✕", `${device.name} gets no more work: ${device.set_aside}`];
      for (const worker of device.workers) {
        if (worker.stalled) yield ["bad", "✕", `${device.name}, worker ${worker.number}: partition ${worker.partition} of ${worker.job_id} does not end`];
      }
      for (const why of Object.values(device.unfit)) yield ["warn", "!", `${device.name} cannot open parameters: ${why}`];
      if (device.strikes && !device.set_aside) yield ["warn", "!", `${device.name}: ${many(device.strikes, "failure")} in a row`];
    }
    const late = failures.filter((failure) => now_ms - failure.at_ms < RECENTLY_MS);
    const look = late.every((failure) => THEIR_CAUSES.has(failure.cause)) ? ["warn", "!"] : ["bad", "✕"];
    if (late.length) yield [...look, `${many(late.length, "job")} failed in the last 15 minutes, the last one: ${late[0].what}`];
    const lately = refused.filter((one) => now_ms - one.at_ms < RECENTLY_MS);
    if (lately.length) yield ["warn", "!", `${many(lately.length, "request")} refused in the last 15 minutes, the last one: ${lately[0].what}`];
    if (closing) yield ["info", "…", "The daemon takes no more work, and ends when what it has is done."];
    else if (not_ready) yield ["warn", "!", `No proof can start now: ${not_ready}`];
    if (queue.waits_for_memory) yield ["warn", "!", `Partition ${queue.waits_for_memory[1]} of ${queue.waits_for_memory[0]} waits for memory.`];
  }

  figures() {
    const { devices, queue, totals, last_hour, results, failures, rejected } = this.state;
    const shares = devices.map((device) => device.time[300] && device.time[300].efficiency_percent).filter((share) => share !== null);
    const proven = results.filter((result) => result.status === "COMPLETED");
    const times = proven.map((result) => result.total_ms).sort((a, b) => a - b);
    const failed = totals.FAILED + totals.TIMEOUT;
    const figures = [
      ["GPU efficiency", shares.length ? [threeDigits(shares.reduce((a, b) => a + b) / shares.length), " %"] : ["–", ""],
        shares.length === devices.length ? "kernels of the last 5 min" : shares.length ? `kernels of the last 5 min, ${shares.length} of ${devices.length} devices` : "no GPU has computed yet"],
      ["Proofs, last hour", [last_hour, ""], `${totals.COMPLETED} since the start`],
      ["Time of a job", [times.length ? duration(times[times.length >> 1]) : "–", ""], times.length ? `median of ${times.length}, last ${duration(proven[0].total_ms)}` : "none yet"],
      ["Running", [queue.jobs_running, queue.jobs_running === 1 ? " job" : " jobs"], many(queue.partitions_ready, "partition") + " ready"],
      ["Waiting", [queue.jobs_waiting, queue.jobs_waiting === 1 ? " job" : " jobs"], many(queue.partitions_pending, "partition") + " to come"],
      ["Failed", [failed, ""], [failures.length ? `last ${this.ago(failures[0].at_ms)} ago` : "since the start", rejected ? `${rejected} refused` : ""].filter(Boolean).join(", "), failed ? "bad" : ""],
    ];
    follow($("#figures"), figures, ([name]) => name,
      ([name]) => element("div", "", element("dt", "", name), element("dd", "value", element("span"), element("small")), element("dd", "sub")),
      (node, [, [value, unit], sub, look]) => {
        attribute(node, "class", look || "");
        say($(".value span", node), String(value));
        say($("small", node), unit);
        say($(".sub", node), sub);
      });
  }

  // ---- devices ----

  devices() {
    follow($("#devices ul"), this.state.devices, (device) => device.name,
      () => element("li", "",
        element("div", "top", element("h3"), element("span", "quiet"), element("p", "chip", element("span", "mark"), element("span", "words"))),
        element("div", "gauges"), element("div", "bar time"), element("ul", "parts time"), element("div", "bar memory"), element("ul", "parts memory"),
        element("ul", "workers"), element("p", "trouble")),
      (node, device) => this.device(node, device));
  }

  device(node, device) {
    const { card, memory, set_aside, wrong_proofs } = device;
    const busy = device.workers.some((worker) => worker.job_id);
    const [look, words] = set_aside ? ["bad", "set aside"] : busy ? ["good", "at work"] : ["", "idle"];
    say($("h3", node), device.name);
    say($(".top .quiet", node), (card && card.name) || "");
    attribute($(".chip", node), "class", `chip ${look}`);
    say($(".chip .words", node), words);
    this.gauges($(".gauges", node), device);
    this.timeParts(node, device);
    purposes(node, memory, ".memory");
    this.workers($(".workers", node), device);
    say($(".trouble", node), set_aside || (wrong_proofs ? `${many(wrong_proofs, "wrong proof")}, none handed out` : ""));
  }

  gauges(node, { card, time }) {
    const share = (window) => (time[window] && time[window].efficiency_percent !== null ? `${threeDigits(time[window].efficiency_percent)} %` : "–");
    const told = card || {};
    const isTold = (value) => value !== null && value !== undefined;
    const gauges = [["share", share(300), "efficiency"], ["minute", share(60), "last minute"]];
    if (isTold(told.temperature_c)) gauges.push(["heat", `${told.temperature_c} °C`, ""]);
    if (isTold(told.power_w)) gauges.push(["power", `${Math.round(told.power_w)} W`, told.power_limit_w ? `of ${Math.round(told.power_limit_w)}` : ""]);
    if (isTold(told.memory_used_bytes)) gauges.push(["room", bytes(told.memory_used_bytes), `of ${bytes(told.memory_total_bytes)} in use`]);
    follow(node, gauges, ([name]) => name, ([name]) => element("span", "", element("b", name), " ", element("span", "quiet")),
      (line, [, value, words]) => {
        say($("b", line), value);
        say($(".quiet", line), words);
      });
  }

  timeParts(node, { name, time, kernel_ms }) {
    const parts = time[300] ? Object.entries(time[300].parts_ms) : [];
    const whole = parts.reduce((sum, [, ms]) => sum + ms, 0);
    const words = kernel_ms === null ? { ...PART_WORDS, call: "at a partition" } : PART_WORDS;
    const shown = parts.map(([part, ms]) => [part, percent(ms, whole)]).filter(([, share]) => share >= 0.5);
    bar($(".bar.time", node), parts, whole, `what the last five minutes of ${name} went to`, words);
    key($(".parts.time", node), shown.map(([part, share]) => [part, `${words[part]} ${Math.round(share)} %`]));
  }

  workers(node, { workers }) {
    follow(node, workers, (worker) => worker.number,
      () => element("li", "", element("span", "quiet"), element("span", "id"), element("span", "part"), element("span", "when")),
      (line, { number, job_id, partition, since_ms, stalled }) => {
        attribute(line, "class", stalled ? "stalled" : job_id ? "" : "idle");
        say($(".quiet", line), `worker ${number}`);
        say($(".id", line), job_id || "idle");
        attribute($(".id", line), "title", job_id || "");
        say($(".part", line), job_id ? `partition ${partition}` : "");
        say($(".when", line), job_id ? duration(this.state.now_ms - since_ms) : "");
      });
  }

  memory() {
    follow($("#memory ul"), this.state.memory, (memory) => memory.name,
      () => element("li", "", element("p", "line", element("span"), element("span", "quiet")), element("div", "bar host"), element("ul", "parts host")),
      (node, memory) => {
        say($(".line span", node), memory.name);
        say($(".line .quiet", node), `${bytes(memory.used_bytes)} of ${bytes(memory.total_bytes)}, at most ${bytes(memory.peak_bytes)}`);
        purposes(node, memory, ".host");
      });
  }

  // ---- jobs ----

  jobs() {
    const { jobs, queue } = this.state;
    const more = queue.jobs_running + queue.jobs_waiting - jobs.length;
    attribute($("#jobs"), "class", jobs.length ? "panel" : "panel none");
    say($("#jobs-more"), more > 0 ? `and ${more} more` : "");
    follow($("#jobs ol"), jobs, (job) => job.job_id,
      () => element("li", "job",
        element("div", "name", element("span", "swatch"), element("span", "id"), element("span", "short")), element("span", "when"),
        element("p", "facts", element("span"), element("b", "urgent")), element("p", "facts when"), element("div", "strip")),
      (node, job) => this.job(node, job));
  }

  job(node, job) {
    const parts = job.partitions;
    const done = parts.filter((part) => part.stage === "proved").length;
    const state = job.status === "ASSEMBLING" ? "putting together" : "under way";
    const isWaiting = job.status === "WAITING";
    attribute(node, "class", isWaiting ? "job waiting" : "job");
    say($(".short", node), isWaiting ? [job.kind, job.priority === "NORMAL" ? "" : job.priority.toLowerCase(), "waiting"].filter(Boolean).join(" · ") : "");
    $(".swatch", node).style.background = this.lanes.colour(job.job_id);
    say($(".id", node), job.job_id);
    attribute($(".id", node), "title", job.job_id);
    say($("span.when", node), duration(this.state.now_ms - job.since_ms));
    say($(".facts span", node), `${job.kind} · ${state}${job.callers > 1 ? ` · ${job.callers} callers` : ""}`);
    say($(".urgent", node), job.priority === "NORMAL" ? "" : ` · ${job.priority.toLowerCase()}`);
    say($("p.when", node), parts.length ? `${done} of ${parts.length}` : "");
    const strip = $(".strip", node);
    strip.hidden = isWaiting;
    attribute(strip, "role", "img");
    const counts = Object.keys(STAGE_WORDS).map((stage) => [parts.filter((part) => part.stage === stage).length, STAGE_WORDS[stage]]);
    attribute(strip, "aria-label", `${many(parts.length, "partition")}: ${counts.filter(([n]) => n).map(([n, words]) => `${n} ${words}`).join(", ")}`);
    follow(strip, strip.hidden ? [] : parts, (part) => part.index, () => element("span"), (cell, part) => {
      attribute(cell, "class", `cell ${part.stage}`);
      const took = [["synthesis", part.synth_ms], ["device", part.gpu_ms]].filter(([, ms]) => ms !== null).map(([name, ms]) => `, ${name} ${duration(ms)}`);
      attribute(cell, "title", `partition ${part.index}: ${STAGE_WORDS[part.stage]}${took.join("")}`);
    });
  }

  // ---- what was ----

  results() {
    const { results } = this.state;
    attribute($("#results"), "class", results.length ? "panel" : "panel none");
    const titles = ["ended", "job", "kind", "result", "total", "queue", "parameters", "synthesis", "device", "lock"];
    follow($("#results tbody"), results, (result) => `${result.at_ms} ${result.job_id}`,
      (result) => {
        const row = element("tr");
        const cells = [clockTime(this.wall(result.at_ms)), result.job_id, result.kind, STATUS_WORDS[result.status]];
        cells.push(...["total_ms", "queue_ms", "srs_ms", "synth_ms", "gpu_ms", "lock_ms"].map((name) => duration(result[name])));
        const looks = ["", "id", "", { COMPLETED: "good", CANCELLED: "warn" }[result.status] || "bad"];
        cells.forEach((text, k) => {
          const cell = element("td", k < looks.length ? looks[k] : "n", element("span", "", text));
          cell.dataset.label = titles[k];
          row.append(cell);
        });
        attribute(row.children[1], "title", result.job_id);
        return row;
      }, () => {});
  }

  failures() {
    const { failures, refused, failures_by_cause, rejected } = this.state;
    const all = [...failures, ...refused.map((one) => ({ ...one, cause: "refused", job_id: "" }))].sort((a, b) => b.at_ms - a.at_ms);
    const counts = Object.entries(rejected ? { ...failures_by_cause, refused: rejected } : failures_by_cause);
    attribute($("#failures"), "class", all.length ? "panel" : "panel none");
    say($("#causes"), counts.map(([cause, count]) => `${cause} ${count}`).join(" · "));
    follow($("#failures ol"), all, (failure) => `${failure.at_ms} ${failure.job_id} ${failure.where}`,
      (failure) => {
        const made = element("li", "",
          element("p", "line", this.time(failure.at_ms), element("span", "cause", `✕ ${failure.cause}`), element("span", "id", failure.job_id)),
          element("p", "", failure.what));
        if (failure.where) made.append(element("p", "quiet", failure.where));
        if (failure.next) made.append(element("p", "", `What to do: ${failure.next}`));
        return made;
      }, () => {});
  }

  incidents() {
    const { incidents } = this.state;
    attribute($("#incidents"), "class", incidents.length ? "panel" : "panel none");
    const looks = { "wrong proof": "bad", "set aside": "bad", stalled: "bad", "cannot open": "bad", "goes elsewhere": "warn", "waits for memory": "warn" };
    follow($("#incidents ol"), incidents, (one) => `${one.at_ms} ${one.what} ${one.job_id} ${one.partition} ${one.device} ${one.text}`,
      (one) => {
        const about = [one.device, one.job_id, one.partition === null ? "" : `partition ${one.partition}`, one.text].filter(Boolean);
        return element("li", "", element("p", "line", this.time(one.at_ms), element("b", looks[one.what] || "", one.what), element("span", "", about.join(" · "))));
      }, () => {});
  }
}

// A bar of parts, [class, size], and what it says to those who cannot see it.
function bar(node, parts, whole, name, words = {}) {
  attribute(node, "role", "img");
  attribute(node, "aria-label", `${name}: ${parts.map(([part, size]) => `${words[part] || part} ${Math.round(percent(size, whole))} %`).join(", ") || "nothing yet"}`);
  follow(node, parts, ([part]) => part, () => element("i"), (piece, [part, size], k) => {
    attribute(piece, "class", part);
    piece.style.width = `${percent(size, whole)}%`;
  });
}

function key(node, parts) {
  follow(node, parts, ([look]) => look, ([look]) => element("li", "", element("i", look), element("span")), (line, [look, words]) => {
    say(line.lastElementChild, words);
  });
}

// What memory is reserved for, the largest first.
function purposes(node, memory, where) {
  const parts = Object.entries(memory.by_purpose).sort((a, b) => b[1] - a[1]).slice(0, 4);
  const label = `${memory.name}: ${bytes(memory.used_bytes)} of ${bytes(memory.total_bytes)} reserved`;
  const box = $(`.bar${where}`, node);
  box.hidden = !memory.total_bytes;
  bar(box, parts.map(([, size], k) => [`m${k}`, size]), memory.total_bytes, label);
  attribute(box, "aria-label", label);
  const words = parts.map(([purpose, size], k) => [`m${k}`, `${purpose} ${bytes(size)}`]);
  if (memory.total_bytes) words.push(["nothing", `${bytes(memory.total_bytes - memory.used_bytes)} free`]);
  key($(`.parts${where}`, node), words);
}
