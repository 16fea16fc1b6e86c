package vmhost

// The result of a turn: effects, and the next step.

import (
	"errors"
	"math"
	"time"
)

// Outcome is the result of a turn. The zero value is [AwaitChange] without effects.
type Outcome struct {
	// Effects are carried out in this order. The first that is refused ends the turn, and the next
	// turn finds it in Request.Last. At most 1,000.
	Effects []Effect
	Next    Next
}

// Next is the step after the effects, which are carried out whatever it is. The functions of this
// package that return an [Outcome] create it.
type Next struct {
	Step    Step
	After   time.Duration
	Message string
}

// Step is the kind of a [Next].
type Step uint8

// The steps; the function of the same name documents each.
const (
	StepAwaitChange Step = iota
	StepRequeueAfter
	StepRequeue
	StepRetry
	StepFail
	StepFinalized
)

// AwaitChange is complete: the next turn is after the object changes.
func AwaitChange(effects ...Effect) Outcome {
	return Outcome{Effects: effects}
}

// RequeueAfter is complete: the next turn is after this time, or after the object changes. In
// milliseconds, at most 49 days.
func RequeueAfter(after time.Duration, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRequeueAfter, After: after}}
}

// Requeue asks for another turn soon, rate limited, without an error.
func Requeue(effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRequeue}}
}

// Retry is a temporary failure. An error returned from Reconcile means the same, without effects.
func Retry(message string, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRetry, Message: message}}
}

// Fail is a permanent failure: the next turn is after the object or the plugin changes. A
// [TerminalError] returned from Reconcile means the same.
func Fail(message string, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepFail, Message: message}}
}

// Finalized completes the clean-up of an object that is being deleted: the host removes the
// finalizer after all effects.
func Finalized(effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepFinalized}}
}

// TerminalError marks err as permanent: an error from Reconcile that is or wraps it means [Fail].
func TerminalError(err error) error {
	return terminal{err}
}

type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// or returns the outcome of a turn that returned err.
func (o Outcome) or(err error) Outcome {
	switch {
	case err == nil:
	case errors.As(err, new(terminal)):
		o.Next = Next{Step: StepFail, Message: err.Error()}
	default:
		o.Next = Next{Step: StepRetry, Message: err.Error()}
	}
	return o
}

// milliseconds rounds up, and limits the value to the contract's range.
func milliseconds(d time.Duration) uint32 {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(max(ms, 0), math.MaxUint32))
}
