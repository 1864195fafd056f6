// Colours for code: comments, strings, numbers, and the words many languages share.

const WORDS = new Set(("abstract and as async await break case catch class const continue crate def default defer del do elif else enum " +
  "except export extends extern false finally fn for from func function global go if impl implements import in instanceof interface is " +
  "lambda let loop match mod module move mut namespace new nil None not null of or package pass private protected pub public raise ref " +
  "return self static struct super switch this throw trait True False true try type typeof undefined unsafe use using var void where " +
  "while with yield then fi done esac echo local end begin elsif unless until SELECT FROM WHERE INSERT INTO UPDATE DELETE JOIN ON AS").split(" "));

const HASH = new Set(["py", "python", "sh", "bash", "zsh", "shell", "rb", "ruby", "yaml", "yml", "toml", "pl", "r", "make", "makefile", "dockerfile", "ini", "conf", "nix", "ex", "exs"]);
const DASH = new Set(["sql", "lua", "hs", "haskell", "elm"]);
const PLAIN = new Set(["", "txt", "text", "log", "md", "markdown", "csv", "plain", "plaintext", "console", "output"]);
const TOO_LONG = 200000;

function highlight(text, language) {
  language = (language || "").toLowerCase();
  if (language === "diff" || language === "patch") return diffLines(text);
  if (PLAIN.has(language) || text.length > TOO_LONG) return [text];
  const comment = HASH.has(language) ? "#[^\\n]*" : DASH.has(language) ? "--[^\\n]*" : "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)";
  const markup = ["html", "xml", "svg", "vue"].includes(language) ? "<!--[\\s\\S]*?(?:-->|$)|" : "";
  const token = new RegExp(
    `(${markup}${comment})|("(?:[^"\\\\\\n]|\\\\[\\s\\S])*"?|'(?:[^'\\\\\\n]|\\\\[\\s\\S])*'?|\`(?:[^\`\\\\]|\\\\[\\s\\S])*\`?)|\\b(\\d[\\w.]*)|([A-Za-z_][\\w]*)`, "g");
  const out = [];
  let plain = 0;
  for (const match of text.matchAll(token)) {
    const kind = match[1] ? "c" : match[2] ? "s" : match[3] ? "n" : WORDS.has(match[4]) ? "k" : null;
    if (!kind) continue;
    if (match.index > plain) out.push(text.slice(plain, match.index));
    out.push(make("span", { class: kind }, match[0]));
    plain = match.index + match[0].length;
  }
  if (plain < text.length) out.push(text.slice(plain));
  return out;
}

function diffLines(text) {
  return text.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : /^(@@|\s*\.\.\.)/.test(line) ? "gap" : "same";
    return make("span", { class: kind }, line || " ");
  });
}

function languageOf(path) {
  const name = String(path || "").split(/[\\/]/).pop().toLowerCase();
  return name.includes(".") ? name.split(".").pop() : name;
}
