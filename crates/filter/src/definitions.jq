def _swap($from; $to): split($from) | join($to);
def _cell(quoted): if . == null then "" elif isboolean or isnumber then tojson
  elif isstring then quoted else error("\(tojson) cannot be in a line of a table") end;
def @csv: map(_cell("\"" + _swap("\""; "\"\"") + "\"")) | join(",");
def @tsv: map(_cell(_swap("\\"; "\\\\") | _swap("\t"; "\\t") | _swap("\n"; "\\n") | _swap("\r"; "\\r"))) | join("\t");
def leaf_paths: paths(scalars);
def toarray: if isarray then . else [.] end;
