#include "replay/compiler/compile_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/lru_cache.h"
#include "replay/compiler/worker_process.h"
#include "replay/unit/digest.h"

namespace reprise {
namespace {

using ReplyPtr = std::shared_ptr<const v1::CompileReply>;

struct Job {
  std::shared_ptr<const v1::CompileInput> input;
  v1::Variant variant;
  v1::CompileTarget target = v1::COMPILE_TARGET_UNSPECIFIED;
  std::string cache_key;
  // Guarded by the pool's mutex.
  bool done = false;
  absl::StatusOr<ReplyPtr> result = absl::UnknownError("not run");
};

bool IsCpu(v1::CompileTarget target) {
  return target == v1::COMPILE_TARGET_CPU ||
         target == v1::COMPILE_TARGET_CPU_INSTRUMENTED;
}

// Without what has no meaning for the target, so that variants that differ in
// nothing else are built once.
v1::Variant ForTarget(v1::Variant variant, v1::CompileTarget target) {
  if (IsCpu(target)) {
    variant.mutable_codegen()->clear_max_registers();
    variant.mutable_codegen()->clear_ptxas_level();
  } else {
    variant.clear_launch();
    variant.mutable_codegen()->clear_prefer_vector_bits();
  }
  return variant;
}

class CompilePoolImpl : public CompilePool {
 public:
  CompilePoolImpl(Options options, TemporaryDirectory directory)
      : options_(std::move(options)),
        directory_(std::move(directory)),
        zmq_context_(zmq_ctx_new()),
        abandon_fd_(eventfd(0, EFD_CLOEXEC)),
        cache_(options_.cache_bytes) {
    for (int i = 0; i < options_.workers; ++i)
      seats_.push_back(std::make_unique<Seat>());
    for (const std::unique_ptr<Seat>& seat : seats_)
      threads_.emplace_back([this, &seat = *seat] { Serve(seat); });
  }

  ~CompilePoolImpl() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      for (const std::unique_ptr<Seat>& seat : seats_) seat->wake.notify_one();
    }
    Abandon();
    for (std::thread& thread : threads_) thread.join();
    zmq_ctx_term(zmq_context_);
    close(abandon_fd_);
  }

  absl::StatusOr<v1::CompileReply> Compile(
      const std::shared_ptr<const v1::CompileInput>& input,
      const v1::Variant& variant, v1::CompileTarget target) override;

  void Prepare(const std::shared_ptr<const v1::CompileInput>& input,
               v1::CompileTarget target) override;

  void Abandon() override {
    abandoned_ = true;
    eventfd_write(abandon_fd_, 1);
  }

  Statistics statistics() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return statistics_;
  }

 private:
  // A worker of one thread, with what it has been told.
  struct Seat {
    std::unique_ptr<WorkerProcess> worker;
    std::set<std::string> known_keys;
    // Guarded by the pool's mutex.
    std::condition_variable wake;
    std::shared_ptr<Job> job;                 // given to this seat
    std::deque<std::shared_ptr<Job>> chores;  // for when there is no job
  };

  void Serve(Seat& seat);
  // All require the mutex.
  void Dispatch(std::shared_ptr<Job> job);
  void Finish(Job& job, absl::StatusOr<ReplyPtr> result);
  // Null: the pool is being destroyed.
  std::shared_ptr<Job> AwaitJob(std::unique_lock<std::mutex>& lock, Seat& seat,
                                bool* is_chore);
  absl::StatusOr<ReplyPtr> RunJob(const Job& job, Seat& seat);
  absl::Status Occupy(Seat& seat);
  absl::StatusOr<std::optional<WorkerProcess::Loss>> Ask(
      const Job& job, Seat& seat, v1::CompileReply& reply);

  const Options options_;
  const TemporaryDirectory directory_;
  void* const zmq_context_;
  const int abandon_fd_;  // readable from Abandon on
  std::atomic<bool> abandoned_ = false;
  LruCache<v1::CompileReply> cache_;
  std::atomic<uint64_t> next_endpoint_{0};
  std::atomic<uint64_t> next_sequence_{1};

  mutable std::mutex mutex_;
  std::condition_variable finished_;  // some job is done
  bool stopping_ = false;
  std::deque<std::shared_ptr<Job>> queue_;  // while no seat is idle
  std::vector<Seat*> idle_;                 // the last one became so last
  std::unordered_map<std::string, std::shared_ptr<Job>> in_flight_;
  Statistics statistics_;

  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<std::thread> threads_;
};

absl::StatusOr<v1::CompileReply> CompilePoolImpl::Compile(
    const std::shared_ptr<const v1::CompileInput>& input,
    const v1::Variant& variant, v1::CompileTarget target) {
  auto job = std::make_shared<Job>();
  job->input = input;
  job->variant = ForTarget(variant, target);
  job->target = target;
  job->cache_key =
      absl::StrCat(VariantDigest(job->variant), target, ":", input->key());
  std::unique_lock<std::mutex> lock(mutex_);
  ++statistics_.jobs;
  if (ReplyPtr reply = cache_.Find(job->cache_key)) {
    ++statistics_.cache_hits;
    return *reply;
  }
  const auto [same, is_new] = in_flight_.emplace(job->cache_key, job);
  if (is_new) {
    Dispatch(job);
  } else {
    ++statistics_.cache_hits;
    job = same->second;
  }
  finished_.wait(lock, [&] { return job->done; });
  RETURN_IF_ERROR(job->result.status());
  return **job->result;
}

void CompilePoolImpl::Dispatch(std::shared_ptr<Job> job) {
  if (idle_.empty()) {
    queue_.push_back(std::move(job));
    return;
  }
  auto chosen = std::prev(idle_.end());
  for (auto seat = idle_.rbegin(); seat != idle_.rend(); ++seat) {
    if ((*seat)->known_keys.count(job->input->key()) == 0) continue;
    chosen = std::prev(seat.base());
    break;
  }
  Seat* const seat = *chosen;
  idle_.erase(chosen);
  seat->job = std::move(job);
  seat->wake.notify_one();
}

// A new line at the end of the kernels' file is a variant that everything has
// to be ready for.
void CompilePoolImpl::Prepare(
    const std::shared_ptr<const v1::CompileInput>& input,
    v1::CompileTarget target) {
  auto job = std::make_shared<Job>();
  job->input = input;
  job->target = target;
  const v1::CompileTranslationUnit& own = input->translation_units(0);
  for (const v1::CompileFile& file : own.files()) {
    if (file.path() != own.main_file()) continue;
    v1::SourceOverlay* overlay = job->variant.add_sources();
    overlay->set_path(file.path());
    overlay->set_content(absl::StrCat(file.content(), "\n"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<Seat>& seat : seats_) {
    seat->chores.push_back(job);
    seat->wake.notify_one();
  }
}

std::shared_ptr<Job> CompilePoolImpl::AwaitJob(
    std::unique_lock<std::mutex>& lock, Seat& seat, bool* is_chore) {
  *is_chore = false;
  if (!stopping_ && !queue_.empty()) {
    std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    return job;
  }
  if (seat.chores.empty()) {
    idle_.push_back(&seat);
    seat.wake.wait(lock, [&] {
      return stopping_ || seat.job != nullptr || !seat.chores.empty();
    });
    std::erase(idle_, &seat);
  }
  if (stopping_) return nullptr;
  if (seat.job != nullptr) return std::exchange(seat.job, nullptr);
  *is_chore = true;
  std::shared_ptr<Job> chore = std::move(seat.chores.front());
  seat.chores.pop_front();
  ++statistics_.chores;
  return chore;
}

void CompilePoolImpl::Serve(Seat& seat) {
  // Ready before the first job wants it; an error shows at that job.
  Occupy(seat).IgnoreError();
  std::unique_lock<std::mutex> lock(mutex_);
  bool is_chore = false;
  while (const std::shared_ptr<Job> job = AwaitJob(lock, seat, &is_chore)) {
    lock.unlock();
    absl::StatusOr<ReplyPtr> result = RunJob(*job, seat);
    lock.lock();
    // Who hears of it and asks for the next one finds this seat idle, unless it
    // has lost its worker.
    if (!is_chore) Finish(*job, std::move(result));
    if (seat.worker != nullptr) continue;
    lock.unlock();
    Occupy(seat).IgnoreError();
    lock.lock();
  }
  lock.unlock();
  seat.worker.reset();
}

void CompilePoolImpl::Finish(Job& job, absl::StatusOr<ReplyPtr> result) {
  in_flight_.erase(job.cache_key);
  job.result = std::move(result);
  job.done = true;
  finished_.notify_all();
}

absl::Status CompilePoolImpl::Occupy(Seat& seat) {
  if (abandoned_) return absl::UnavailableError("the compilers end");
  if (seat.worker != nullptr) return absl::OkStatus();
  seat.known_keys.clear();
  WorkerProcess::Options options;
  options.executable = options_.executable;
  options.arguments = options_.worker_arguments;
  options.endpoint = absl::StrCat("ipc://", directory_.path(), "/",
                                  next_endpoint_.fetch_add(1));
  options.directory = directory_.path();
  options.cuda_home = options_.cuda_home;
  options.driver_cuda = options_.driver_cuda;
  options.memory_bytes = options_.worker_memory_bytes;
  options.abandon_fd = abandon_fd_;
  absl::StatusOr<std::unique_ptr<WorkerProcess>> worker =
      WorkerProcess::Start(options, zmq_context_);
  if (!worker.ok()) return worker.status();
  seat.worker = *std::move(worker);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerProcess::Loss>> CompilePoolImpl::Ask(
    const Job& job, Seat& seat, v1::CompileReply& reply) {
  v1::CompileRequest request;
  request.set_sequence(next_sequence_.fetch_add(1));
  request.set_input_key(job.input->key());
  *request.mutable_variant() = job.variant;
  request.set_target(job.target);
  if (seat.known_keys.count(job.input->key()) == 0) {
    *request.mutable_input() = *job.input;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++statistics_.inputs_sent;
  }
  ASSIGN_OR_RETURN(std::optional<WorkerProcess::Loss> loss,
                   seat.worker->Exchange(request, options_.job_timeout, reply));
  if (!loss && reply.need_input()) {
    *request.mutable_input() = *job.input;
    ASSIGN_OR_RETURN(
        loss, seat.worker->Exchange(request, options_.job_timeout, reply));
  }
  if (!loss) seat.known_keys.insert(job.input->key());
  if (!loss && reply.sequence() != request.sequence()) {
    return absl::InternalError(absl::StrCat("a compile worker answered ",
                                            reply.sequence(), ", expected ",
                                            request.sequence()));
  }
  return loss;
}

absl::StatusOr<ReplyPtr> CompilePoolImpl::RunJob(const Job& job, Seat& seat) {
  // A worker that somebody else killed says nothing about the variant: such a
  // job gets a second chance.
  for (int attempt = 0;; ++attempt) {
    RETURN_IF_ERROR(Occupy(seat));
    auto reply = std::make_shared<v1::CompileReply>();
    absl::StatusOr<std::optional<WorkerProcess::Loss>> loss =
        Ask(job, seat, *reply);
    if (!loss.ok()) {
      seat.worker.reset();
      return loss.status();
    }
    if (!*loss) {
      // What this machine lacks may be there next time.
      if (reply->kind() != v1::OUTCOME_KIND_INFRASTRUCTURE)
        cache_.Insert(job.cache_key, reply, reply->ByteSizeLong());
      return ReplyPtr(std::move(reply));
    }
    seat.worker.reset();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++statistics_.workers_lost;
    }
    LOG_INFO("lost a compile worker: it {}", (*loss)->description);
    const bool killed = (*loss)->reason == WorkerProcess::Loss::Reason::kKilled;
    if (killed && attempt == 0) continue;
    reply = std::make_shared<v1::CompileReply>();
    reply->set_kind(killed ? v1::OUTCOME_KIND_INFRASTRUCTURE
                           : v1::OUTCOME_KIND_COMPILE_ERROR);
    reply->set_diagnostics(absl::StrCat("the compiler ", (*loss)->description));
    return ReplyPtr(std::move(reply));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompilePool>> CompilePool::Create(
    Options options) {
  if (options.workers < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", options.workers, " compile workers, expected at least 1"));
  }
  if (options.cuda_home.empty()) {
    const char* variable = std::getenv("CUDA_HOME");
    options.cuda_home =
        variable != nullptr && *variable != '\0' ? variable : "/usr/local/cuda";
  }
  ASSIGN_OR_RETURN(TemporaryDirectory directory,
                   TemporaryDirectory::Create("reprise-compile"));
  return std::make_unique<CompilePoolImpl>(std::move(options),
                                           std::move(directory));
}

}  // namespace reprise
