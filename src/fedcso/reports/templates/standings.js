/* The chosen values hide all other rows, in every table that has the column. */
const selects = [...document.querySelectorAll("select[data-column]")];
function show() {
  let shown = 0;
  for (const table of document.querySelectorAll("table")) {
    const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    const wanted = selects.filter((select) => select.value && names.includes(select.dataset.column))
      .map((select) => [names.indexOf(select.dataset.column), select.value]);
    for (const row of table.tBodies[0].rows) {
      row.hidden = wanted.some(([place, value]) => row.cells[place].textContent !== value);
      shown += row.hidden ? 0 : 1;
    }
  }
  document.getElementById("count").textContent = `${shown} rows`;
}
for (const select of selects) select.onchange = show;
show();
