// The timeline: for each device its kernels and its workers, then the queue and the syntheses, the newest at the right.

const KEPT_MS = 15 * 60 * 1000;
const WORDS = {
  kernel: "kernels", call: "on a device", wait: "waiting for the lock", synthesis: "synthesis", queue: "ready, waiting for a device",
};
const HEIGHTS = { kernel: 12, call: 18, synthesis: 9, queue: 24 };
const ROW_GAP = 3, GROUP_GAP = 12, AXIS = 20;

class Lanes {
  constructor(canvas, tip, said) {
    Object.assign(this, { canvas, tip, said, minutes: 5, now: 0, ended: [], open: [], colours: new Map(), devices: [] });
    this.isFresh = true;
    this.drawn = []; // what can be pointed at: { row, x, y, width, height, span }
    this.chosen = null;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.choose(null));
    canvas.addEventListener("blur", () => this.choose(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.draw());
    }
  }

  hear(document) {
    const spans = (rows) => rows.map(([kind, device, worker, job, partition, start, end, failed]) => {
      const name = document.jobs[job];
      if (!this.colours.has(name)) this.colours.set(name, this.colours.size % 8);
      return { kind, device, worker, job: name, partition, start, end: end === null ? Infinity : end, failed };
    });
    this.now = document.now_ms;
    this.heardAt = Date.now();
    this.ended = (this.isFresh ? [] : this.ended).concat(spans(document.ended)).filter((span) => span.end > this.now - KEPT_MS);
    this.open = spans(document.open);
    this.isFresh = false;
    const shown = new Set([...this.ended, ...this.open].map((span) => span.job));
    for (const job of this.colours.keys()) if (!shown.has(job) && this.colours.size > 400) this.colours.delete(job);
  }

  colour(job) {
    return this.colours.has(job) ? `var(--j${this.colours.get(job)})` : "";
  }

  // ---- rows ----

  rows(from) {
    const spans = [...this.ended, ...this.open].filter((span) => span.end > from).sort((a, b) => a.start - b.start);
    const of = (kind, device, worker) => spans.filter((span) =>
      span.kind === kind && (device === undefined || span.device === device) && (worker === undefined || span.worker === worker));
    const groups = this.devices.map((device) => {
      const workers = device.workers.map(({ number }) => (
        { label: `worker ${number}`, kind: "call", spans: of("call", device.ordinal, number), inner: of("wait", device.ordinal, number).filter((span) => span.end > span.start) }));
      const isGpu = device.kernel_ms !== null || device.name.startsWith("cuda");
      if (!isGpu) return [{ ...workers[0], label: device.name }, ...workers.slice(1)];
      return [{ label: device.name, kind: "kernel", spans: of("kernel", device.ordinal) }, ...workers];
    });
    const syntheses = spread(of("synthesis")).map((row, k) => ({ label: k ? "" : "synthesis", kind: "synthesis", spans: row }));
    const queue = of("queue");
    groups.push([{ label: `ready ${queue.filter((span) => span.end === Infinity).length}`, kind: "queue", spans: queue }]);
    groups.push(syntheses.length ? syntheses : [{ label: "synthesis", kind: "synthesis", spans: [] }]);
    return groups;
  }

  // ---- drawing ----

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const from = this.now - this.minutes * 60000;
    const groups = this.rows(from);
    const left = width < 560 ? 58 : 92;
    let height = AXIS;
    for (const group of groups) height += group.reduce((sum, row) => sum + HEIGHTS[row.kind] + ROW_GAP, GROUP_GAP - ROW_GAP);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const place = { pen, colour, left, right: width, from, pixels: (width - left) / (this.minutes * 60000) };
    this.drawn = [];
    this.axis(place, height);
    let y = 2;
    for (const group of groups) {
      for (const row of group) {
        this.row(place, row, y);
        y += HEIGHTS[row.kind] + ROW_GAP;
      }
      y += GROUP_GAP - ROW_GAP;
    }
    this.mark(place);
  }

  axis({ pen, colour, left, right, pixels }, height) {
    const every = (this.minutes === 1 ? 10 : this.minutes * 12) * (right < 560 ? 2 : 1);
    const unit = this.minutes === 1 ? "s" : "min";
    pen.fillStyle = colour("quiet");
    for (let ago = 0; ago <= this.minutes * 60; ago += every) {
      const x = right - ago * 1000 * pixels;
      pen.fillStyle = colour("line");
      pen.fillRect(Math.min(Math.round(x), right - 1), 0, 1, height - AXIS + 3);
      pen.fillStyle = colour("quiet");
      pen.textAlign = ago ? (x - left < 20 ? "left" : "center") : "right";
      pen.fillText(ago ? `−${unit === "s" ? ago : +(ago / 60).toFixed(1)} ${unit}` : "now", Math.max(x, left), height - AXIS / 2 + 1);
    }
  }

  row(place, row, y) {
    const { pen, colour, left, right } = place;
    const height = HEIGHTS[row.kind];
    pen.fillStyle = colour("quiet");
    pen.textAlign = "left";
    pen.fillText(row.label, 0, y + height / 2 + 0.5, left - 6);
    pen.fillStyle = colour("track");
    pen.fillRect(left, y, right - left, height);
    if (row.kind === "queue") return this.depth(place, row, y, height);
    for (const span of row.spans) this.bar(place, row, span, y, height);
    for (const span of row.inner || []) {
      pen.globalAlpha = 0.65;
      this.box(place, span, y, height, colour("panel"), row);
      pen.globalAlpha = 1;
    }
    if (row.kind === "call") for (const span of row.spans) this.number(place, span, y, height);
  }

  box({ pen, left, right, from, pixels }, span, y, height, fill, row) {
    const x = Math.max(left, left + (span.start - from) * pixels);
    const end = Math.min(right, left + (Math.min(span.end, this.now) - from) * pixels);
    const width = Math.max(end - x, 1);
    pen.fillStyle = fill;
    pen.fillRect(x, y, width, height);
    this.drawn.push({ row, x, y, width, height, span });
    return { x, width };
  }

  bar(place, row, span, y, height) {
    const { pen, colour } = place;
    const fill = row.kind === "kernel" ? colour("kernel") : colour(`j${this.colours.get(span.job)}`);
    const { x, width } = this.box(place, span, y, height, fill, row);
    if (span.failed) {
      pen.strokeStyle = colour("bad");
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), height - 2);
    } else if (width > 4) { // a seam between neighbours of one colour
      pen.fillStyle = colour("panel");
      pen.fillRect(x + width - 1, y, 1, height);
    }
  }

  number({ pen, colour, from, left, right, pixels }, span, y, height) {
    if (span.partition === null) return;
    const end = Math.min(right, left + (Math.min(span.end, this.now) - from) * pixels);
    const text = String(span.partition);
    if (end - Math.max(left, left + (span.start - from) * pixels) < pen.measureText(text).width + 8) return;
    pen.fillStyle = colour("panel");
    pen.textAlign = "right";
    pen.fillText(text, end - 4, y + height / 2 + 0.5);
  }

  depth({ pen, colour, left, right, from, pixels }, row, y, height) {
    const steps = row.spans.flatMap((span) => [[span.start, 1], [span.end, -1]]).filter(([at]) => at !== Infinity).sort((a, b) => a[0] - b[0]);
    let depth = 0, most = 1;
    for (const [, change] of steps) { depth += change; most = Math.max(most, depth); }
    const top = (count) => y + height - (height - 2) * count / most;
    pen.fillStyle = colour("other");
    pen.beginPath();
    pen.moveTo(left, y + height);
    depth = 0;
    for (const [at, change] of steps) {
      const x = Math.max(left, left + (at - from) * pixels);
      pen.lineTo(x, top(depth));
      depth += change;
      pen.lineTo(x, top(depth));
    }
    pen.lineTo(right, top(depth));
    pen.lineTo(right, y + height);
    pen.fill();
  }

  // ---- pointing ----

  mark({ pen, colour }) {
    const chosen = this.chosen && this.drawn.find(({ span }) => same(span, this.chosen));
    this.tip.hidden = !chosen;
    if (!chosen) return;
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 2;
    pen.strokeRect(chosen.x - 1, chosen.y - 1, chosen.width + 2, chosen.height + 2);
    say(this.tip, this.describe(chosen.span));
    const room = this.canvas.parentElement.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(chosen.x, room))}px`;
    this.tip.style.top = `${chosen.y + chosen.height + 6}px`;
  }

  describe(span) {
    const where = span.partition === null ? span.job : `partition ${span.partition} of ${span.job}`;
    const took = span.end === Infinity ? `for ${duration(this.now - span.start)} now` : duration(span.end - span.start);
    const begin = clockTime(new Date(this.heardAt - (this.now - span.start)));
    return `${WORDS[span.kind]}, ${took}${span.failed ? ", failed" : ""}\n${where}\nsince ${begin}`;
  }

  choose(span) {
    this.chosen = span;
    this.draw();
  }

  point(event) {
    const x = event.offsetX, y = event.offsetY;
    const hit = this.drawn.findLast((box) => y >= box.y && y < box.y + box.height && x >= box.x - 1 && x <= box.x + box.width + 1);
    if ((hit && hit.span) !== this.chosen) this.choose(hit ? hit.span : null);
  }

  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") return this.choose(null);
    if (!step) return;
    event.preventDefault();
    const rows = [...new Set(this.drawn.map((box) => box.row))];
    const boxes = (row) => this.drawn.filter((box) => box.row === row).sort((a, b) => a.x - b.x);
    const at = this.chosen && this.drawn.find(({ span }) => same(span, this.chosen));
    let next;
    if (!at) next = rows.length ? boxes(rows[0]).at(-1) : null;
    else if (step[1]) next = boxes(at.row)[boxes(at.row).indexOf(at) + step[1]] || at;
    else {
      const row = rows[rows.indexOf(at.row) + step[0]];
      next = row ? boxes(row).reduce((best, box) => (Math.abs(box.x - at.x) < Math.abs(best.x - at.x) ? box : best)) : at;
    }
    if (!next) return say(this.said, "Nothing in this stretch of time.");
    this.choose(next.span);
    say(this.said, this.describe(next.span));
  }
}

// Spans, by start, in as few rows as they need.
function spread(spans) {
  const rows = [];
  for (const span of spans) {
    let row = rows.find((one) => one.at(-1).end <= span.start);
    if (!row) rows.push(row = []);
    row.push(span);
  }
  return rows;
}

function same(a, b) {
  return a.kind === b.kind && a.job === b.job && a.partition === b.partition && a.worker === b.worker && a.start === b.start;
}
