// Threads that work on the tasks of one call.
//
// A cell is some twenty short regions of tasks with a step of one thread between them: waking a
// thread for each would take longer than many of them. So helpers are called once, at the
// beginning, and look for the next task without sleeping until the call ends. The calling thread
// works too and waits for tasks that have begun only: a helper that starts late, or never, holds up
// nothing.
//
// Helpers are threads of our own. XLA's pool has as many threads as there are cores, but while a
// loop runs (an epoch is one) some of them wait for others to end; on two cores often none was left
// to help.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "cell.h"

namespace jaxevo {

struct TaskFailed {};  // what the caller sees of an exception in any thread

// Threads that sleep until there is something to do. They live as long as the process.
class Helpers {
 public:
  static Helpers& get() {
    static Helpers* helpers = new Helpers;  // never destroyed: a thread may still use it at exit
    return *helpers;
  }

  // Starts threads until there are so many, or the system has no more.
  void grow(int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      for (; threads_ < threads; threads_++) std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void schedule(std::function<void()> job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (threads_ == 0) return;  // nobody would ever take it
      jobs_.push_back(std::move(job));
    }
    added_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [this] { return !jobs_.empty(); });
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> jobs_;
  int threads_ = 0;
};

class Team {
 public:
  // The calling thread and so many others less one.
  explicit Team(int threads) : board_(std::make_shared<Board>()) {
    Helpers::get().grow(threads - 1);
    for (int helper = 1; helper < threads; helper++)
      Helpers::get().schedule([board = board_] { board->help(); });
  }
  ~Team() { board_->open.store(false, std::memory_order_release); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Threads threads() {
    return {this, [](void* team, int tasks, void (*task)(const void*, int), const void* context) {
              static_cast<Team*>(team)->board_->run(tasks, task, context);
            }};
  }

 private:
  // One number holds how many tasks there are and which is next, so that whoever takes a task knows
  // that it exists. The region it belongs to cannot end, nor `task` change, before it is done.
  struct Board {
    std::atomic<uint64_t> state{0};  // tasks << 32 | next
    std::atomic<int> done{0};
    std::atomic<bool> failed{false};
    std::atomic<bool> open{true};
    void (*task)(const void*, int) = nullptr;
    const void* context = nullptr;

    void run(int tasks, void (*new_task)(const void*, int), const void* new_context) {
      task = new_task;
      context = new_context;
      done.store(0, std::memory_order_relaxed);
      state.store(static_cast<uint64_t>(tasks) << 32, std::memory_order_release);
      while (take()) {
      }
      for (int spins = 0; done.load(std::memory_order_acquire) < tasks; spins++) wait(spins);
      if (failed.load(std::memory_order_relaxed)) throw TaskFailed();
    }

    void help() {
      for (int spins = 0; open.load(std::memory_order_acquire); spins++) {
        if (take()) spins = 0;
        wait(spins);
      }
    }

    // Does one task, if there is one.
    bool take() {
      if (!has_next(state.load(std::memory_order_acquire))) return false;
      const uint64_t taken = state.fetch_add(1, std::memory_order_acq_rel);
      if (!has_next(taken)) return false;
      try {
        task(context, static_cast<int>(taken & 0xffffffffu));
      } catch (...) {
        failed.store(true, std::memory_order_relaxed);
      }
      done.fetch_add(1, std::memory_order_release);
      return true;
    }

    static bool has_next(uint64_t state) { return (state & 0xffffffffu) < state >> 32; }

    // Gives the core to another thread after a while, should there be more threads than cores.
    static void wait(int spins) {
      if (spins > 200) {
        std::this_thread::yield();
      } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
      }
    }
  };

  std::shared_ptr<Board> board_;
};

}  // namespace jaxevo
