// Replays the steps: the slider is the position, and all else follows it.
const steps = JSON.parse(document.getElementById("steps").textContent);
const [slider, play, area] = ["step", "play", "area"].map((id) => document.getElementById(id));
const dots = [...document.querySelectorAll("[data-step]")];
const exact = new Intl.NumberFormat("en-US");
const top_ = Number(area.dataset.top);

function clock(ms) {
  if (ms === undefined) return "unknown";
  const seconds = Math.floor(ms / 1000);
  const two = (value) => String(value).padStart(2, "0");
  return `+${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

function put(id, text) {
  document.getElementById(id).textContent = text;
}

function items(list, children) {
  list?.replaceChildren(...children.map(([head, text, kind]) => {
    const item = document.createElement("li");
    item.className = kind;
    item.append(Object.assign(document.createElement("span"), { textContent: head }));
    if (text) item.append(Object.assign(document.createElement("p"), { textContent: text }));
    return item;
  }));
}

function show() {
  const at = Number(slider.value);
  const step = steps[at];
  const x = `${(100 * at) / Math.max(steps.length - 1, 1)}%`;
  const cursor = document.getElementById("cursor");
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  const here = document.getElementById("here");
  here.setAttribute("cx", x);
  here.setAttribute("cy", `${100 - (100 * step.used) / top_}%`);
  put("used", `${exact.format(step.used)} tokens`);
  put("percent", step.percent === undefined ? "unknown" : `${step.assumed ? "~" : ""}${Math.floor(step.percent)}%`);
  put("number", `${exact.format(at + 1)} of ${exact.format(steps.length)}`);
  put("time", clock(step.at_ms));
  slider.setAttribute("aria-valuetext", `response ${at + 1}, ${exact.format(step.used)} tokens`);
  const own = dots.filter((dot) => Number(dot.dataset.step) === at);
  for (const dot of dots) dot.toggleAttribute("aria-current", own.includes(dot));
  items(document.getElementById("happened"), own.map((dot) => [dot.lastElementChild.textContent, "", dot.className]));
  items(document.getElementById("texts"), (step.texts ?? []).map(({ of, text }) => [of, text, "said"]));
}

function go(at) {
  slider.value = at;
  show();
}

// A whole session in twenty seconds, whatever its length; events are looked at for longer.
let timer = 0;
function stop() {
  clearTimeout(timer);
  timer = 0;
  play.textContent = "Play";
}
function next() {
  const at = Number(slider.value) + 1;
  if (at >= steps.length) return stop();
  go(at);
  timer = setTimeout(next, steps[at].events ? 700 : Math.min(20_000 / steps.length, 400));
}
play.addEventListener("click", () => {
  if (timer) return stop();
  if (Number(slider.value) === steps.length - 1) go(0);
  play.textContent = "Pause";
  next();
});
slider.addEventListener("input", () => { stop(); show(); });
area.addEventListener("pointerdown", (event) => {
  const { left, width } = area.getBoundingClientRect();
  stop();
  go(Math.round(((event.clientX - left) / width) * (steps.length - 1)));
});
for (const dot of dots) dot.addEventListener("click", () => { stop(); go(Number(dot.dataset.step)); });
go(steps.length - 1);
