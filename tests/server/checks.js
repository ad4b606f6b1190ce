// What the tests ask of the page as a whole: each gives what is wrong with it.

// Visible texts whose contrast with their ground is below 4.5 to 1, by the formula of WCAG; and how many there are.
function poorContrast() {
  const channels = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (node) => {
    const found = channels(getComputedStyle(node).backgroundColor);
    return found.length === 4 && found[3] === 0 ? ground(node.parentElement) : found;
  };
  const poor = [];
  let count = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility() || node.closest(".hidden, .skip, script, style")) continue;
    const own = light(channels(getComputedStyle(node).color)), behind = light(ground(node));
    const ratio = (Math.max(own, behind) + 0.05) / (Math.min(own, behind) + 0.05);
    count += 1;
    if (ratio < 4.5) poor.push(`${text}: ${ratio.toFixed(2)}`);
  }
  return [count, poor];
}

// Visible elements that stand out of the window, but for those that scroll or are cut by themselves.
function tooWide() {
  return [...document.querySelectorAll("main *")]
    .filter((one) => one.checkVisibility() && !one.closest(".scroll, .hidden, .id, #tip"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 80));
}

// Controls, pictures and regions that a screen reader could not name; ids that are there twice.
function nameless() {
  const named = (one) => one.ariaLabel || one.getAttribute("aria-labelledby") || one.innerText?.trim() || one.labels?.length;
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return [...document.querySelectorAll("section, table, button, input, canvas, .bar, .strip")]
    .filter((one) => !named(one))
    .map((one) => one.outerHTML.slice(0, 80))
    .concat(ids.filter((id, k) => ids.indexOf(id) !== k));
}

// How many pixels of the timeline have each colour.
function laneColours() {
  const canvas = document.querySelector("#lanes");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = {};
  for (let k = 0; k < data.length; k += 4) {
    const name = [data[k], data[k + 1], data[k + 2]].join();
    found[name] = (found[name] || 0) + 1;
  }
  return found;
}
