//go:build wasip1

// Package runtime is the memory that crosses between the host and a component made of Go code.
//
// It stands in for go.bytecodealliance.org/pkg/wit/runtime (see ../LICENSE), which the generated bindings ask for. That one loses an instance that is called
// again and again: what the host puts into the guest is allocated on Go's heap, the allocation may start a garbage collection, the collection reads clocks, and
// calling out of an allocation is forbidden ("cannot leave component instance", wasmtime#14318). Here an allocation on behalf of the host never starts a
// collection nor works for one that runs. Collections happen as always: when the policy allocates.
package runtime

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Allocate returns zeroed memory that stays where it is until pinner lets go of it.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	pointer := allocate(size, align)
	pinner.Pin(pointer)
	return pointer
}

func allocate(size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	switch align {
	case 1:
		return unsafe.Pointer(unsafe.SliceData(make([]uint8, size)))
	case 2:
		return unsafe.Pointer(unsafe.SliceData(make([]uint16, (size+1)/2)))
	case 4:
		return unsafe.Pointer(unsafe.SliceData(make([]uint32, (size+3)/4)))
	case 8:
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	default:
		panic(fmt.Sprintf("unsupported alignment: %v", align))
	}
}

// What the host has put here and the bindings have not yet read: nothing else points to it. Arguments and results are apart, since a goroutine that an earlier
// call left behind may still be reading its result when the arguments of the next call arrive.
var arguments, results []unsafe.Pointer

// Unpin is called by the bindings when they have read the arguments of an export.
func Unpin() {
	clear(arguments)
	arguments = arguments[:0]
}

var crossings int

// Crossing calls an import and keeps what it returns until the bindings have read it. Reading allocates, which may let another goroutine make a crossing of its
// own; so only the last one out clears up.
func Crossing[T any](call func() T) T {
	crossings++
	defer func() {
		if crossings--; crossings == 0 {
			clear(results)
			results = results[:0]
		}
	}()
	return call()
}

// While a goroutine is pinned, the runtime neither starts a collection from an allocation nor makes the allocation help with one that runs.
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// The heap may still grow, and growing it may time how long memory takes to be given back. While paused, the adapter answers with the time of the last reading.
//
//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func pauseClock(paused bool)

// The three functions below must not be split over stacks: growing a stack allocates, before anything is paused.

//go:wasmexport cabi_export_realloc
//go:nosplit
func exportRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	return quietly(&arguments, old, oldSize, align, size)
}

//go:wasmexport cabi_import_realloc
//go:nosplit
func importRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	return quietly(&results, old, oldSize, align, size)
}

//go:nosplit
func quietly(kept *[]unsafe.Pointer, old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	pauseClock(true)
	procPin()
	pointer := reallocate(kept, old, oldSize, align, size)
	procUnpin()
	pauseClock(false)
	return pointer
}

func reallocate(kept *[]unsafe.Pointer, old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	pointer := allocate(size, align)
	copy(unsafe.Slice((*byte)(pointer), size), unsafe.Slice((*byte)(old), oldSize))
	*kept = append(*kept, pointer)
	return pointer
}

// The adapter between WASI preview 1, which Go speaks, and the component asks for its stack and its state, 64 KiB each, before Go's heap is there.
var (
	adapterMemory [3 << 16]byte
	adapterUsed   uintptr
)

//go:wasmexport cabi_realloc_adapter
//go:nosplit
func adapterRealloc(_ unsafe.Pointer, _, align, size uintptr) unsafe.Pointer {
	start := (uintptr(unsafe.Pointer(&adapterMemory))+adapterUsed+align-1)&^(align-1) - uintptr(unsafe.Pointer(&adapterMemory))
	if start+size > uintptr(len(adapterMemory)) {
		return nil
	}
	adapterUsed = start + size
	return unsafe.Pointer(&adapterMemory[start])
}
