#!/usr/bin/env bash
# ask.sh MESSAGE [PINION-ARGUMENT...]: sends one prompt and prints the answer as it arrives. Needs jq.
set -uo pipefail

# Translates a record into a kind and its fields; @tsv escapes the fields and printf %b restores them.
filter='
  if .assistantMessageEvent.type == "text_delta" then ["text", .assistantMessageEvent.delta]
  elif .type == "tool_execution_start" then ["show", "[\(.toolName) \(.args | tojson)]"]
  elif .type == "extension_ui_request" and (.method | IN("select", "confirm", "input", "editor"))
    then ["ask", .id, .method, "\(.title)\n\(.message // "")\n\(.options // [] | join("\n"))"]
  elif .type == "message_end" and .message.role == "assistant" then ["answer", .message.errorMessage // ""]
  elif .type == "response" and (.success | not) then ["refused", .error]
  elif .id == "prompt" then ["accepted"]
  elif .type == "agent_end" or (.command == "get_state" and (.data.isStreaming | not)) then ["done"]
  else empty end | @tsv'
reply='{type: "extension_ui_response", $id} +
  if $said == "" then {cancelled: true} elif $method == "confirm" then {confirmed: ($said == "y")} else {value: $said} end'

directory=$(mktemp -d) && trap 'rm -r "$directory"' EXIT && mkfifo "$directory/commands" || exit
exec {from}< <(pinion --mode rpc "${@:2}" <"$directory/commands" | jq --unbuffered -r "$filter") {to}>"$directory/commands"
pinion=$!
send() { jq -cn "$@" >&"$to"; } 2>/dev/null # if pinion has exited, the loop below ends

send --arg message "$1" '{id: "prompt", type: "prompt", $message}'
deadline=$((SECONDS + ${TIMEOUT:-600})) failure='' line=''
while :; do
  IFS= read -r -t "$((deadline > SECONDS ? deadline - SECONDS : 1))" part <&"$from"
  status=$? line+=$part
  if ((SECONDS >= deadline)); then
    send '{type: "abort"}'
    deadline=$((SECONDS + 86400))
  fi
  ((status > 128)) && continue # read timed out; it may have read a part of a line
  ((status != 0)) && break
  IFS=$'\t' read -r kind value method question <<<"$line"
  line=''
  case $kind in
    text) printf '%b' "$value" ;;
    show) printf '%b\n' "$value" >&2 ;;
    ask)
      printf '%b\n' "$question" >&2
      read -r said || said=''
      send --arg id "$value" --arg method "$method" --arg said "$said" "$reply"
      ;;
    answer) failure=$value ;; # a failed or aborted answer has a message
    accepted) send '{type: "get_state"}' ;; # is there a run? a command of an extension starts none
    refused | done)
      [[ $kind == done ]] || failure=$value
      exec {to}>&- # pinion does the remaining work, such as a retry, and exits
      ;;
  esac
done
wait "$pinion" || failure+=" (pinion ended with exit code $?)"
[[ -z $failure ]] || { printf '%b\n' "$failure" >&2; exit 1; }
