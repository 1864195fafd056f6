#!/bin/bash
# greeter.sh: greets a person by name.
echo '{"type":"register","manifest":{"domain":"demo","commands":[{"name":"greet","description":"Say hello","input":{"name":{"type":"string","required":true}}}]}}'
while read -r line; do
  [ "$(jq -r .type <<<"$line")" = invoke ] || continue
  id=$(jq .id <<<"$line")
  case $(jq -r .command <<<"$line") in
    greet) jq -c "{type: \"result\", id: $id, output: (\"Hello, \" + .input.name)}" <<<"$line" ;;
    *) echo "{\"type\":\"error\",\"id\":$id,\"error\":\"unknown command: $(jq -r .command <<<"$line")\"}" ;;
  esac
done
