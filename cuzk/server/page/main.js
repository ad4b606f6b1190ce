// Puts the page together: what the feed brings goes to lanes and panels, what becomes of it to the head.

const lanes = new Lanes($("#lanes"), $("#tip"), $("#lanes-said"));
const panels = new Panels(lanes);
let heardAt = null;
let countdown = 0;

function hear(name, state) {
  if (name === "opened") lanes.isFresh = true;
  if (name === "spans") lanes.hear(state);
  if (name !== "state") return;
  heardAt = new Date();
  lanes.devices = state.devices;
  panels.show(state);
  lanes.draw();
  describe(state);
}

function describe(state) {
  const shares = state.devices.map(({ name, time }) => [name, time[300] && time[300].efficiency_percent]);
  const known = shares.filter(([, share]) => share !== null).map(([name, share]) => `${name} computed ${Math.round(share)} % of the time`);
  attribute($("#lanes"), "aria-label", `Timeline of ${many(state.devices.length, "device")}. ${known.join(", ")}`);
  document.title = `${panels.isBad ? "⚠ " : ""}${state.queue.jobs_running} running, ${state.queue.jobs_waiting} waiting – cuzk`;
  icon(panels.isBad ? "#c2202c" : state.not_ready ? "#d4a72c" : "#2da44e");
}

function icon(colour) {
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${colour}"/></svg>`;
  attribute($("#icon"), "href", `data:image/svg+xml,${encodeURIComponent(picture)}`);
}

function show(link, pauseMs) {
  const [look, words] = { live: ["good", "live"], connecting: ["", "connecting"], lost: ["bad", "connection lost"], token: ["warn", "token needed"] }[link];
  attribute($("#link"), "class", `chip ${look}`);
  say($("#link .words"), words);
  document.body.classList.toggle("unknown", heardAt === null);
  document.body.classList.toggle("old", link !== "live");
  $("#access").hidden = link !== "token";
  if (link === "live" || link === "token") $("#lost").hidden = true;
  if (link !== "lost") return clearInterval(countdown);
  $("#lost").hidden = false;
  say($("#lost-words"), heardAt ? `Connection lost. What is below was so at ${clockTime(heardAt)}.` : "The daemon does not answer.");
  document.title = "⚠ connection lost – cuzk";
  icon("#8c959f");
  const end = Date.now() + pauseMs;
  const tick = () => say($("#lost-again"), `Trying again in ${Math.max(0, Math.ceil((end - Date.now()) / 1000))} s.`);
  clearInterval(countdown);
  countdown = setInterval(tick, 500);
  tick();
}

const feed = new Feed(hear, show);
$("#again").addEventListener("click", () => feed.wake());
$("#access").addEventListener("submit", (event) => {
  event.preventDefault();
  say($("#access-words"), "");
  sessionStorage.setItem("token", $("#token").value);
  $("#token").value = "";
  feed.wake();
});
$("#window").addEventListener("change", (event) => {
  lanes.minutes = Number(event.target.value);
  lanes.draw();
});
feed.run();
