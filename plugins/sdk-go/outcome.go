package vmhost

// What a turn decides: effects, and what comes then.

import (
	"errors"
	"math"
	"time"
)

// Outcome is what a turn decided. The zero value is [AwaitChange] without effects.
type Outcome struct {
	// Effects are carried out in this order; the first that is refused ends the turn, and the policy finds it in Request.Last. At most 1,000.
	Effects []Effect
	Next    Next
}

// Next is what comes after the effects, which are carried out first, whatever this says. The functions of this package that return an [Outcome] make it.
type Next struct {
	Step    Step
	After   time.Duration
	Message string
}

// Step is the kind of a [Next].
type Step uint8

// The steps; the function of the same name says what each means.
const (
	StepAwaitChange Step = iota
	StepRequeueAfter
	StepRequeue
	StepRetry
	StepFail
	StepFinalized
)

// AwaitChange says that all is done: come back when the object changes.
func AwaitChange(effects ...Effect) Outcome {
	return Outcome{Effects: effects}
}

// RequeueAfter says that all is done: come back after this time, or when the object changes. To the millisecond, at most 49 days.
func RequeueAfter(after time.Duration, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRequeueAfter, After: after}}
}

// Requeue asks to come back soon, rate limited; no error.
func Requeue(effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRequeue}}
}

// Retry says that something failed that may pass. As an error from Reconcile, which is shorter.
func Retry(message string, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepRetry, Message: message}}
}

// Fail says that something failed that repeating cannot mend: nothing happens until the object or the plugin changes. As a [TerminalError] from Reconcile.
func Fail(message string, effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepFail, Message: message}}
}

// Finalized says that the clean-up of an object that is being deleted is done: the host takes the finalizer off when all effects have been carried out.
func Finalized(effects ...Effect) Outcome {
	return Outcome{effects, Next{Step: StepFinalized}}
}

// TerminalError makes err one that repeating cannot mend: returned from Reconcile, or wrapped by what is, it is [Fail].
func TerminalError(err error) error {
	return terminal{err}
}

type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// or is the outcome of a turn that returned err.
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

// milliseconds is rounded up, and kept within what the contract can say.
func milliseconds(d time.Duration) uint32 {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(max(ms, 0), math.MaxUint32))
}
