// Ask sends one prompt and prints the answer as it arrives: go run ask.go MESSAGE [PINION-ARGUMENT...]
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"time"
)

type event struct {
	Type, ID, Command, Error, ToolName, Method, Title string
	Args, Message, Options                            json.RawMessage
	Data                                              struct{ IsStreaming bool }
	AssistantMessageEvent                             struct{ Type, Delta string }
}

func main() {
	pinion := exec.Command("pinion", append([]string{"--mode", "rpc"}, os.Args[2:]...)...)
	pinion.Stderr = os.Stderr
	stdin, _ := pinion.StdinPipe()
	stdout, _ := pinion.StdoutPipe()
	if err := pinion.Start(); err != nil {
		log.Fatal(err)
	}
	send := func(command map[string]any) { json.NewEncoder(stdin).Encode(command) } // if pinion has exited, reading ends
	if limit, err := time.ParseDuration(os.Getenv("TIMEOUT") + "s"); err == nil {
		time.AfterFunc(limit, func() { send(map[string]any{"type": "abort"}) })
	}
	send(map[string]any{"id": "prompt", "type": "prompt", "message": os.Args[1]})
	var last struct{ ErrorMessage string } // failed and aborted answers have one
	user, records := bufio.NewScanner(os.Stdin), json.NewDecoder(stdout)
	for e := (event{}); records.Decode(&e) == nil; e = (event{}) {
		switch {
		case e.AssistantMessageEvent.Type == "text_delta":
			os.Stdout.WriteString(e.AssistantMessageEvent.Delta)
		case e.Type == "tool_execution_start":
			log.Printf("[%s %s]", e.ToolName, e.Args)
		case e.Method == "select" || e.Method == "confirm" || e.Method == "input" || e.Method == "editor":
			log.Printf("%s %s %s", e.Title, e.Message, e.Options)
			user.Scan()
			send(map[string]any{"type": "extension_ui_response", "id": e.ID, "value": user.Text(), "confirmed": user.Text() == "y"})
		case e.Type == "message_end":
			last.ErrorMessage = ""
			json.Unmarshal(e.Message, &last)
		case e.Type == "response" && e.Error != "":
			log.Fatal(e.Error)
		case e.ID == "prompt":
			send(map[string]any{"type": "get_state"}) // is there a run? a command of an extension starts none
		case e.Type == "agent_end" || e.Command == "get_state" && !e.Data.IsStreaming:
			stdin.Close() // pinion does the remaining work, such as a retry, and exits
		}
	}
	if pinion.Wait(); last.ErrorMessage != "" || !pinion.ProcessState.Success() {
		log.Fatalf("%s (pinion: %s)", last.ErrorMessage, pinion.ProcessState)
	}
}
