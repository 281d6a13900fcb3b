// What every page does beyond HTML: where the focus goes, and progress of jobs.

// After a form was refused, and after a part of the page was replaced, people who do
// not see it are led to what is new.
const problem = document.getElementById("problem");
if (problem) problem.focus();

document.addEventListener("htmx:afterSwap", (event) => {
  const target = event.detail.target;
  const wanted = target.closest("[data-focus]");
  if (wanted) wanted.focus();
});

// Arrow keys move between the cells of a grid of links.
for (const grid of document.querySelectorAll("table[data-grid]")) {
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0],
      ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td, th");
    if (!step || !cell) return;
    const row = grid.rows[cell.parentElement.rowIndex + step[0]];
    for (let at = cell.cellIndex + step[1]; row && row.cells[at]; at += step[1]) {
      const link = row.cells[at].querySelector("a");
      if (link) {
        link.focus();
        event.preventDefault();
        return;
      }
      if (!step[1]) return;
    }
  });
}

// A job reports its progress; when it ends, the page shows its result.
const job = document.querySelector("[data-job]");
if (job) {
  const events = new EventSource(job.dataset.job);
  const bar = job.querySelector("progress");
  events.addEventListener("job", (event) => {
    const found = JSON.parse(event.data);
    bar.value = found.progress;
    if (!["queued", "running"].includes(found.state)) {
      events.close();
      location.reload();
    }
  });
}
