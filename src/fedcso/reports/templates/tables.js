/* Tables sort by the column that is clicked: by number where there is one at the start, else as text. */
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, i) => {
    const text = row.cells[i].textContent.trim().replace(/(?<=\d)\s(?=\d{3})/g, ""); // 9 600 is one number
    const leading = parseFloat(text);
    return /^[-+]?[\d.]/.test(text) && !Number.isNaN(leading) ? leading : text;
  };
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    const sort = () => {
      const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [one, two] = [value(a, i), value(b, i)];
        if (typeof one !== typeof two) return typeof one === "number" ? -1 : 1; // undefined ones last, either way
        return way * (typeof one === "number" ? one - two : one.localeCompare(two));
      });
      table.tBodies[0].append(...rows);
    };
    head.onclick = sort;
    head.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } };
  });
}

document.querySelectorAll("table").forEach(sortable);
document.getElementById("theme").onclick = () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
};
