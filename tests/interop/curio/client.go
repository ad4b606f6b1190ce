// Package main talks to a proving daemon as Curio does: one channel for all tasks, its limits, its deadlines,
// its reading of answers.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "cuzk/interop/proving"
)

const (
	maxMessageBytes = 256 << 20
	statusTimeout   = 5 * time.Second
)

// Client is opened once in a process. The channel connects with the first call, and again after a loss.
type Client struct {
	conn         *grpc.ClientConn
	engine       pb.ProvingEngineClient
	proveTimeout time.Duration // 0: none
	maxPending   int
	pending      chan struct{} // one item for each Prove under way
}

// NewClient connects nowhere yet.
func NewClient(address string, proveTimeout time.Duration, maxPending int) (*Client, error) {
	conn, err := grpc.NewClient(target(address),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessageBytes),
			grpc.MaxCallSendMsgSize(maxMessageBytes),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}
	return &Client{
		conn:         conn,
		engine:       pb.NewProvingEngineClient(conn),
		proveTimeout: proveTimeout,
		maxPending:   maxPending,
		pending:      make(chan struct{}, maxPending),
	}, nil
}

// target is what gRPC calls an address: with a scheme it stays, everything else is a name.
func target(address string) string {
	if strings.Contains(address, "://") || strings.HasPrefix(address, "unix:") {
		return address
	}
	return "dns:///" + address
}

// Prove waits for a place among the calls under way, then for the proof. Any end but COMPLETED is an error.
func (c *Client) Prove(ctx context.Context, submit *pb.SubmitProofRequest) ([]byte, error) {
	select {
	case c.pending <- struct{}{}:
		defer func() { <-c.pending }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.proveTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.proveTimeout)
		defer cancel()
	}
	answer, err := c.engine.Prove(ctx, &pb.ProveRequest{Submit: submit})
	if err != nil {
		return nil, fmt.Errorf("prove: %w", err)
	}
	return proofOf(answer.GetResult())
}

func proofOf(result *pb.AwaitProofResponse) ([]byte, error) {
	if result == nil {
		return nil, fmt.Errorf("the answer has no result")
	}
	switch result.Status {
	case pb.AwaitProofResponse_COMPLETED:
		if len(result.Proof) == 0 {
			return nil, fmt.Errorf("the proof is empty")
		}
		return result.Proof, nil
	case pb.AwaitProofResponse_FAILED:
		return nil, fmt.Errorf("proof failed: %s", result.ErrorMessage)
	default:
		return nil, fmt.Errorf("proof ended as %s", result.Status)
	}
}

// HasCapacity says whether fewer jobs are queued or under way than this client may have.
func (c *Client) HasCapacity(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := c.engine.GetStatus(ctx, &pb.GetStatusRequest{})
	if err != nil {
		return false, fmt.Errorf("status: %w", err)
	}
	jobs := 0
	for _, queue := range status.Queues {
		jobs += int(queue.Pending) + int(queue.InProgress)
	}
	return jobs < c.maxPending, nil
}
