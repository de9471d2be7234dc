// What the pages of the explorer do without being loaded again.
"use strict";

const byId = (id) => document.getElementById(id);
const form = byId("choices");
const sliders = byId("sliders");
const GONE = "The explorer does not answer: it may have ended.";

// A slider writes into the field beside it, which may hold any number.
const VALUES = {
  epsilon: Array.from({ length: 61 }, (_, k) => String(+(10 ** (k / 20 - 2)).toPrecision(2))),
  confidence: ["", "0.5", "0.8", "0.9", "0.95", "0.99", "0.999"],
};
for (const slider of document.querySelectorAll("[data-for]")) {
  const field = byId(slider.dataset.for);
  const values = VALUES[slider.dataset.for];
  const tell = () => slider.setAttribute("aria-valuetext", field.value || field.placeholder);
  const follow = () => {
    field.value = field.value.replace(",", ".");
    const near = values.findIndex((value) => +value >= +field.value);
    slider.value = near < 0 ? values.length - 1 : near;
    tell();
  };
  slider.addEventListener("input", () => {
    field.value = values[slider.value];
    tell();
  });
  field.addEventListener("input", follow);
  follow();
}

// The preview follows sliders and fields; what is outdated is not waited for.
let asking;
async function refresh(...parts) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const query = new URLSearchParams(new FormData(form));
  history.replaceState(null, "", `?${query}`);
  const regionOf = (part) => document.querySelector(`[data-part="${part}"]`) ?? byId("offer");
  for (const part of parts) regionOf(part).ariaBusy = true; // what stands there is outdated
  let more = true;
  for (const part of parts) {
    const region = regionOf(part);
    region.ariaBusy = more;
    if (!more && region !== byId("offer")) region.textContent = "";
    if (!more) continue;
    try {
      const answer = await fetch(`${form.getAttribute("action")}/preview/${part}?${query}`, { signal });
      const text = await answer.text();
      const focus = document.activeElement.id;
      region.innerHTML = text;
      byId(focus)?.focus();
      more = answer.ok && Boolean(query.get("epsilon"));
    } catch (error) {
      if (error.name === "AbortError") return;
      region.textContent = GONE;
    }
    region.ariaBusy = false;
  }
}
let typing;
sliders?.addEventListener("input", (event) => {
  clearTimeout(typing);
  const pause = event.target.id in VALUES ? 300 : 0; // a number is not complete at each key
  typing = setTimeout(refresh, pause, "offer", "all", "rows");
});
if (byId("epsilon")?.value) refresh("all", "rows");

// What must be counted first: a button says why it cannot be pressed, and nothing below holds.
function check() {
  const { secret, public: column } = form.elements;
  const lacking = [!secret.value && "a secret", !column.value && "a column to publish"].filter(Boolean);
  const same = secret.value === column.value ? "The secret and the published column must differ." : "";
  byId("count-why").textContent = lacking.length ? `Choose ${lacking.join(" and ")} first.` : same;
  byId("count").disabled = Boolean(byId("count-why").textContent);
}
const OF_COLUMN = { public: ["order", "levels", "declared"], secret: ["pair"] };
form?.addEventListener("input", (event) => {
  check();
  for (const name of OF_COLUMN[event.target.id] ?? []) {
    for (const each of form.querySelectorAll(`[name="${name}"]`)) each.disabled = true;
  }
  if (!sliders || sliders.contains(event.target)) return;
  sliders.hidden = true;
  byId("stale").hidden = false;
});
if (form) check();

// Files are sent as they are.
for (const upload of document.querySelectorAll("[data-upload]")) {
  upload.addEventListener("submit", async (event) => {
    event.preventDefault();
    const state = upload.querySelector("[role=status]");
    const file = upload.elements.file.files[0];
    const asked = new URLSearchParams({ name: file.name });
    if (upload.elements.table) asked.set("table", upload.elements.table.value);
    if (file.size > upload.dataset.most * 1e6) {
      state.textContent = `The file is larger than ${upload.dataset.most} MB: give its path instead.`;
      return;
    }
    state.textContent = "It is being sent and read.";
    try {
      const headers = { Accept: "application/json" };
      const answer = await (await fetch(`/upload?${asked}`, { method: "POST", body: file, headers })).json();
      if (answer.location) location.assign(answer.location);
      else state.textContent = answer.error;
    } catch {
      state.textContent = GONE;
    }
  });
}

// A command that runs is watched.
const job = document.querySelector("[data-job]");
async function watch() {
  try {
    const found = await (await fetch(location.href, { headers: { Accept: "application/json" } })).json();
    if (found.state !== "running") return location.replace(location.href);
    job.textContent = `It has run for ${found.seconds} s.`;
  } catch {
    job.textContent = GONE;
  }
  return setTimeout(watch, 400);
}
if (job) watch();

// A form is sent once; a page that one comes back to is loaded anew.
addEventListener("pageshow", (event) => event.persisted && location.reload());
document.addEventListener("submit", (event) => {
  if (!event.defaultPrevented && event.submitter) setTimeout(() => (event.submitter.disabled = true));
});
