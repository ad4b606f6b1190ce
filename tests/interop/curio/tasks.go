package main

import (
	"fmt"

	pb "cuzk/interop/proving"
)

// Task is what one of Curio's tasks knows of its proof; bytes come as base64.
type Task struct {
	Caller          string   `json:"caller"`
	Miner           uint64   `json:"miner"`
	Sector          uint64   `json:"sector"`
	TaskID          uint64   `json:"task_id"`
	Partition       uint64   `json:"partition"`
	SectorSize      uint64   `json:"sector_size"`
	RegisteredProof uint64   `json:"registered_proof"`
	Vanilla         [][]byte `json:"vanilla"`
	Randomness      []byte   `json:"randomness"`
	CommROld        []byte   `json:"comm_r_old"`
	CommRNew        []byte   `json:"comm_r_new"`
	CommDNew        []byte   `json:"comm_d_new"`
}

// Request sets the fields that the caller of that name sets, and no others.
func (t *Task) Request() (*pb.SubmitProofRequest, error) {
	switch t.Caller {
	case "porep":
		return t.porep(fmt.Sprintf("porep-%d-%d", t.Miner, t.Sector)), nil
	case "ps-porep":
		return t.porep(fmt.Sprintf("ps-porep-%d-%d-%d", t.Miner, t.Sector, t.TaskID)), nil
	case "snap":
		request := t.snap(fmt.Sprintf("snap-%d-%d", t.Miner, t.Sector))
		request.SectorSize = t.SectorSize
		return request, nil
	case "ps-snap":
		return t.snap(fmt.Sprintf("ps-snap-%d-%d-%d", t.Miner, t.Sector, t.TaskID)), nil
	case "window":
		// %d of a slice of bytes: "[1 2 3 4 5 6 7 8]"; the partition index is always sent as 0
		id := fmt.Sprintf("wdpost-%d-%d-%d", t.Miner, t.Partition, t.Randomness[:8])
		return t.post(id, pb.ProofKind_WINDOW_POST_PARTITION, pb.Priority_HIGH), nil
	case "winning":
		id := fmt.Sprintf("winpost-%d-%x", t.Miner, t.Randomness[:8])
		return t.post(id, pb.ProofKind_WINNING_POST, pb.Priority_CRITICAL), nil
	}
	return nil, fmt.Errorf("no task is called %q", t.Caller)
}

func (t *Task) porep(id string) *pb.SubmitProofRequest {
	return &pb.SubmitProofRequest{
		RequestId:       id,
		ProofKind:       pb.ProofKind_POREP_SEAL_COMMIT,
		SectorSize:      t.SectorSize,
		RegisteredProof: t.RegisteredProof,
		Priority:        pb.Priority_NORMAL,
		VanillaProof:    t.Vanilla[0],
		SectorNumber:    t.Sector,
		MinerId:         t.Miner,
	}
}

func (t *Task) snap(id string) *pb.SubmitProofRequest {
	return &pb.SubmitProofRequest{
		RequestId:       id,
		ProofKind:       pb.ProofKind_SNAP_DEALS_UPDATE,
		RegisteredProof: t.RegisteredProof,
		Priority:        pb.Priority_NORMAL,
		VanillaProofs:   t.Vanilla,
		SectorNumber:    t.Sector,
		MinerId:         t.Miner,
		CommROld:        t.CommROld,
		CommRNew:        t.CommRNew,
		CommDNew:        t.CommDNew,
	}
}

func (t *Task) post(id string, kind pb.ProofKind, priority pb.Priority) *pb.SubmitProofRequest {
	return &pb.SubmitProofRequest{
		RequestId:       id,
		ProofKind:       kind,
		SectorSize:      t.SectorSize,
		RegisteredProof: t.RegisteredProof,
		Priority:        priority,
		VanillaProofs:   t.Vanilla,
		MinerId:         t.Miner,
		Randomness:      t.Randomness,
	}
}
