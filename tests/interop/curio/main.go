package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	pb "cuzk/interop/proving"
)

// Order is one JSON value on stdin: "prove" a task, ask for "capacity", or "cancel" the order of that id.
type Order struct {
	ID   string `json:"id"`
	Do   string `json:"do"`
	Task Task   `json:"task"`
}

// Answer is one line of JSON on stdout, in the order in which calls end; a cancel has none of its own.
// Request is what was sent, less its inputs; Code is gRPC's for the error, "OK" without one.
type Answer struct {
	ID          string                 `json:"id"`
	Proof       []byte                 `json:"proof"`
	HasCapacity bool                   `json:"has_capacity"`
	Error       string                 `json:"error"`
	Code        string                 `json:"code"`
	Request     *pb.SubmitProofRequest `json:"request"`
}

type desk struct {
	client  *Client
	lock    sync.Mutex // of what follows, and of stdout
	cancels map[string]context.CancelFunc
	out     *json.Encoder
}

func main() {
	timeout := flag.Duration("prove-timeout", 30*time.Minute, "of a Prove call; 0: none")
	maxPending := flag.Int("max-pending", 10, "Prove calls under way at once")
	flag.Parse()
	client, err := NewClient(flag.Arg(0), *timeout, *maxPending)
	if err != nil {
		log.Fatal(err)
	}
	d := &desk{client: client, cancels: map[string]context.CancelFunc{}, out: json.NewEncoder(os.Stdout)}
	d.serve(json.NewDecoder(os.Stdin))
}

// serve takes orders until stdin ends, then waits for what is under way.
func (d *desk) serve(orders *json.Decoder) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		var order Order
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if order.Do == "cancel" {
			d.lock.Lock()
			d.cancels[order.ID]()
			d.lock.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		d.lock.Lock()
		d.cancels[order.ID] = cancel
		d.lock.Unlock()
		all.Add(1)
		go func() {
			defer all.Done()
			d.tell(d.carryOut(ctx, &order))
		}()
	}
}

func (d *desk) carryOut(ctx context.Context, order *Order) *Answer {
	answer := &Answer{ID: order.ID}
	var err error
	switch order.Do {
	case "prove":
		if answer.Request, err = order.Task.Request(); err == nil {
			answer.Proof, err = d.client.Prove(ctx, answer.Request)
			answer.Request.VanillaProof, answer.Request.VanillaProofs = nil, nil
		}
	case "capacity":
		answer.HasCapacity, err = d.client.HasCapacity(ctx)
	default:
		log.Fatalf("no order is called %q", order.Do)
	}
	if err != nil {
		answer.Error = err.Error()
		answer.Code = codeOf(err)
	} else {
		answer.Code = "OK"
	}
	return answer
}

// codeOf an error of a call; "" of one that the client made of an answer.
func codeOf(err error) string {
	if said, ok := status.FromError(err); ok {
		return said.Code().String()
	}
	return ""
}

func (d *desk) tell(answer *Answer) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := d.out.Encode(answer); err != nil {
		log.Fatal(err)
	}
}
