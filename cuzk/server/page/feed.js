// The connection: events as they come, a watchdog, another try after each loss, a token where one is asked for.
// The stream is read by hand: EventSource can send no token, and does not say when it is stuck.

const SILENCE_MS = 6000;
const PAUSES_MS = [1000, 2000, 4000, 8000, 15000];

class Feed {
  constructor(hear, show) {
    this.hear = hear; // (event name, document); "opened" comes before the first of a stream
    this.show = show; // ("live" | "connecting" | "lost" | "token", milliseconds to the next try)
    this.tries = 0;
    this.wake = () => {};
    window.addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
  }

  async run() {
    for (;;) {
      try {
        await this.read();
      } catch (error) {
        console.debug("events:", error.message);
      }
      const pause = PAUSES_MS[Math.min(this.tries, PAUSES_MS.length - 1)];
      this.tries += 1;
      this.show("lost", pause);
      await this.pause(pause);
      this.show("connecting", 0);
    }
  }

  pause(ms) {
    return new Promise((resolve) => {
      const timer = ms === undefined ? 0 : setTimeout(resolve, ms);
      this.wake = () => { clearTimeout(timer); resolve(); };
    });
  }

  // Until the stream ends, which it does by an error only.
  async read() {
    const stop = new AbortController();
    let watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
    try {
      const response = await this.request(stop.signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      this.hear("opened", null);
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the stream ended");
        clearTimeout(watchdog);
        watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
        text += value;
        let end;
        while ((end = text.indexOf("\n\n")) >= 0) {
          this.take(text.slice(0, end));
          text = text.slice(end + 2);
        }
      }
    } finally {
      clearTimeout(watchdog);
      stop.abort();
    }
  }

  async request(signal) {
    const token = sessionStorage.getItem("token");
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const response = await fetch("events", { headers, signal, cache: "no-store" });
    if (response.status === 401) {
      this.show("token", 0);
      await this.pause();
      throw new Error("again, with a token");
    }
    if (!response.ok) throw new Error(`status ${response.status}`);
    return response;
  }

  take(event) {
    const [name, data] = event.split("\n").map((line) => line.slice(line.indexOf(":") + 2));
    this.tries = 0;
    this.hear(name, JSON.parse(data));
    this.show("live", 0);
  }
}
