// A click on a heading sorts its table, a second one turns the order round. A page of a run that
// goes on loads itself anew, unless a table was sorted: the order would be lost.
let sorted = false;
const value = (row, column) => row.cells[column].textContent.trim();
const number = (text) => parseFloat(text.replaceAll(",", ""));
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    sorted = true;
    const heading = button.closest("th");
    const column = heading.cellIndex;
    const words = heading.classList.contains("text");
    const now = heading.getAttribute("aria-sort");
    const down = now ? now === "ascending" : !words; // of numbers the largest come first
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = heading.closest("table").tBodies[0];
    const compare = (one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      if (!a || !b) return !a - !b; // what is missing comes last in either order
      const order = words ? a.localeCompare(b) : number(a) - number(b);
      return down ? -order : order;
    };
    body.append(...[...body.rows].sort(compare));
  });
}
const seconds = Number(document.body.dataset.reload);
if (seconds) setInterval(() => sorted || location.reload(), 1000 * seconds);
