// Fuzzy search by some letters in order. A lower score is a better match.

const BOUNDARY = /[\s\-_./:]/;

function score(query, text) {
  let total = 0;
  let run = 0;
  let last = -1;
  for (const letter of query) {
    const at = text.indexOf(letter, last + 1);
    if (at < 0) return undefined;
    run = at === last + 1 ? run + 1 : 0;
    if (run > 0) total -= 5 * run;
    else if (last >= 0) total += 2 * (at - last - 1);
    if (at === 0 || BOUNDARY.test(text[at - 1])) total -= 10;
    total += at / 10;
    last = at;
  }
  return query === text ? total - 100 : total;
}

/** `4gpt` also matches `gpt-4`: letters and digits may be swapped, as a weaker match. */
function swapped(query) {
  const found = /^([a-z]+)(\d+)$/.exec(query) ?? /^(\d+)([a-z]+)$/.exec(query);
  return found ? found[2] + found[1] : undefined;
}

export function fuzzyMatch(query, text) {
  const [wanted, given] = [query.toLowerCase(), text.toLowerCase()];
  if (wanted === "") return { matches: true, score: 0 };
  const direct = score(wanted, given);
  if (direct !== undefined) return { matches: true, score: direct };
  const other = swapped(wanted);
  const turned = other === undefined ? undefined : score(other, given);
  return turned === undefined ? { matches: false, score: 0 } : { matches: true, score: turned + 5 };
}

/** Returns the items that match every word of `query`, best first. */
export function fuzzyFilter(items, query, getText) {
  const words = query.trim().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return items;
  const ranked = [];
  for (const item of items) {
    const found = words.map((word) => fuzzyMatch(word, getText(item)));
    if (found.every(({ matches }) => matches)) ranked.push({ item, total: found.reduce((sum, match) => sum + match.score, 0) });
  }
  return ranked.sort((left, right) => left.total - right.total).map(({ item }) => item);
}
