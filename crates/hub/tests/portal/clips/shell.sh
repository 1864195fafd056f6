#!/bin/bash
# A clip that needs nothing but bash.
echo '{"type":"register","manifest":{"description":"Written in bash","commands":[{"name":"hello","description":"Says hello","input":"{\"type\":\"object\",\"properties\":{}}"}]}}'
while read -r line; do
  [[ $line == *'"invoke"'* && $line =~ \"id\":(\"[^\"]*\"|[0-9]+) ]] || continue
  echo "{\"type\":\"result\",\"id\":${BASH_REMATCH[1]},\"output\":\"hello from bash\"}"
done
