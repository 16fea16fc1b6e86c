// Package queue runs client-go's workqueue under the operations of host/queue/benches:
//
//	go test -bench . -cpu 1          the cost of each operation (with 4 workers: -cpu 2)
//	go test -run Worst -v            the longest add: a million keys, a thousand getters
package queue

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/util/workqueue"
)

// Name is a key as in controller-runtime.
type Name struct{ Namespace, Name string }

const (
	batch   = 1000
	keys    = 1_000_000
	getters = 1000
)

func name(n int) Name {
	return Name{fmt.Sprintf("namespace-%d", n%10), fmt.Sprintf("object-%07d", n)}
}

func names(count int) []Name {
	all := make([]Name, count)
	for n := range all {
		all[n] = name(n)
	}
	return all
}

func limited[K comparable]() workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](5*time.Millisecond, 1000*time.Second))
}

func cycle[K comparable](b *testing.B, all []K) {
	queue := limited[K]()
	defer queue.ShutDown()
	b.Run("add+get+done", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			queue.Add(all[n%batch])
			key, _ := queue.Get()
			queue.Done(key)
		}
	})
	b.Run("batch of 1000 add+get+done", func(b *testing.B) {
		for b.Loop() {
			for _, key := range all {
				queue.Add(key)
			}
			for range all {
				key, _ := queue.Get()
				queue.Done(key)
			}
		}
	})
	b.Run("add+get+forget+done", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			queue.Add(all[n%batch])
			key, _ := queue.Get()
			queue.Forget(key)
			queue.Done(key)
		}
	})
	b.Run("forget, nothing fails", func(b *testing.B) {
		for b.Loop() {
			queue.Forget(all[7])
		}
	})
	queue.Add(all[7])
	b.Run("duplicate add", func(b *testing.B) {
		for b.Loop() {
			queue.Add(all[7])
		}
	})
}

func BenchmarkU64(b *testing.B) {
	all := make([]uint64, batch)
	for n := range all {
		all[n] = uint64(n)
	}
	cycle(b, all)
}

func BenchmarkName(b *testing.B) {
	cycle(b, names(batch))
}

// Each add goes over a channel to the queue's goroutine, so this is the whole cost only if that
// goroutine keeps up.
func BenchmarkAddAfter(b *testing.B) {
	queue := limited[uint64]()
	defer queue.ShutDown()
	for n := uint64(0); b.Loop(); n++ {
		queue.AddAfter(n, time.Hour)
	}
}

func BenchmarkAddRateLimitedForget(b *testing.B) {
	queue := limited[uint64]()
	defer queue.ShutDown()
	for n := uint64(0); b.Loop(); n++ {
		queue.AddRateLimited(n)
		queue.Forget(n)
	}
}

func BenchmarkGetWith4Workers(b *testing.B) {
	queue := limited[uint64]()
	var taken atomic.Uint64
	for range 4 {
		go func() {
			for {
				key, end := queue.Get()
				if end {
					return
				}
				queue.Done(key)
				taken.Add(1)
			}
		}()
	}
	b.ResetTimer()
	for n := range b.N {
		queue.Add(uint64(n))
	}
	for taken.Load() < uint64(b.N) {
		runtime.Gosched()
	}
	b.StopTimer()
	queue.ShutDown()
}

func cpu() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return now.Nano()
}

func row(t *testing.T, name string, times []int64) {
	slow := 0
	for _, time := range times {
		if time > 1_000_000 {
			slow++
		}
	}
	slices.Sort(times)
	at := func(share float64) int64 { return times[int(float64(len(times)-1)*share)] }
	t.Logf("%-12s p50 %7d ns, p99 %7d ns, p99.99 %8d ns, longest %9d ns, %d over 1 ms", name, at(0.5), at(0.99), at(0.9999), at(1), slow)
}

// timed runs an action for each number and measures each run, in wall-clock time and in CPU time of
// its thread.
func timed(t *testing.T, title string, action func(n uint64)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wall, onCPU := make([]int64, keys), make([]int64, keys)
	for n := range uint64(keys) {
		start, startCPU := time.Now(), cpu()
		action(n)
		onCPU[n] = cpu() - startCPU
		wall[n] = int64(time.Since(start))
	}
	t.Log(title)
	row(t, "wall clock", wall)
	row(t, "CPU time", onCPU)
}

func TestWorst(t *testing.T) {
	timed(t, "nothing", func(uint64) {})
	queue := limited[uint64]()
	timed(t, "add, growing from nothing to 1M keys", queue.Add)
	for range getters {
		queue.Get()
	}
	timed(t, "add, on top of 1M keys, 1000 in processing", func(n uint64) { queue.Add(keys + n) })
	queue.ShutDown()

	queue = limited[uint64]()
	for range getters {
		go func() {
			for {
				key, end := queue.Get()
				if end {
					return
				}
				runtime.Gosched()
				queue.Done(key)
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	timed(t, "add, 1M keys, 1000 getters", queue.Add)
	queue.ShutDown()
}

func TestGrowth(t *testing.T) {
	for _, count := range []int{1_000, 10_000, 100_000, 1_000_000} {
		all := names(count)
		best := [2]time.Duration{time.Hour, time.Hour}
		for range min(5_000_000/count, 500) {
			queue := limited[Name]()
			start := time.Now()
			for _, key := range all {
				queue.Add(key)
			}
			best[0] = min(best[0], time.Since(start))
			start = time.Now()
			for range all {
				key, _ := queue.Get()
				queue.Done(key)
			}
			best[1] = min(best[1], time.Since(start))
			queue.ShutDown()
		}
		t.Logf("%9d keys: %d ns a key to add, %d ns to get and end", count, int(best[0])/count, int(best[1])/count)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestMemory(t *testing.T) {
	before := heap()
	queue := limited[Name]()
	t.Logf("an empty queue: %d bytes, and two goroutines", int64(heap()-before))
	all := names(keys)
	base := heap()
	for _, key := range all {
		queue.Add(key)
	}
	t.Logf("1M queued keys: %d bytes each beside the text", (heap()-base)/keys)
	for range all {
		key, _ := queue.Get()
		queue.Done(key)
	}
	t.Logf("after they are drained: %d bytes more than before", int64(heap()-base))
	runtime.KeepAlive(all)
	queue.ShutDown()
}
