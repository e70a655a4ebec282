// One engine: what a start settled, what is known of commits, and the two sides that work with both.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/engine_environment.hpp"
#include "engine/job_end.hpp"
#include "engine/reader.hpp"
#include "engine/schedule.hpp"
#include "engine/store_loss.hpp"
#include "engine/writer.hpp"
#include "kedge/engine.hpp"

namespace kedge::engine {

class EngineImpl {
 public:
  /// How long the end of an engine waits for a write that is under way.
  static constexpr std::chrono::seconds kEndTimeout{10};

  /// COLLECTIVE.
  EngineImpl(std::unique_ptr<Communicator> communicator, Options options, const EngineEnvironment& environment);

  /// Local. Before it is destroyed: ends what goes on in the background, without communicating. False if something
  /// does not end soon, or if this is a child of the process that made it: this must then be kept until the process
  /// ends.
  [[nodiscard]] bool end();
  /// Local. A dead engine's files stay mapped: messages that nobody waits for any more may still be sent from them.
  ~EngineImpl();
  EngineImpl(const EngineImpl&) = delete;
  EngineImpl& operator=(const EngineImpl&) = delete;

  void leave_by_error(std::string_view why) noexcept;
  [[nodiscard]] bool is_own_process() const noexcept { return lifecycle_.is_own_process(); }
  [[nodiscard]] Lifecycle& lifecycle() noexcept { return lifecycle_; }
  [[nodiscard]] Writer& writer() noexcept { return writer_; }
  [[nodiscard]] pipeline::Pipeline& pipeline() noexcept { return pipeline_; }
  [[nodiscard]] pipeline::BackgroundPause& pause() noexcept { return pause_; }

  /// A collective call, and what is to be told of commits then.
  template <class Body>
  auto call(Body&& body) {
    if (pipeline_.completions().is_in_callback()) {
      throw Error(ErrorCode::bad_state,
                  "a callback of on_complete must not make collective calls: it runs on each rank independently");
    }
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
        lifecycle_.collective([&] { group_.run_or_leave(std::forward<Body>(body)); });
        pipeline_.completions().deliver_outcomes();
      } else {
        auto result = lifecycle_.collective([&] { return group_.run_or_leave(std::forward<Body>(body)); });
        pipeline_.completions().deliver_outcomes();
        return result;
      }
    } catch (...) {
      has_failed_ = true;
      throw;
    }
  }
  [[nodiscard]] Reader& reader() noexcept { return reader_; }
  /// By the engine's clock.
  [[nodiscard]] double seconds() const { return environment_.clock->seconds(); }

  // COLLECTIVE, as in kedge/engine.hpp; but for level, which is local and may be called from any thread.
  [[nodiscard]] bool need_checkpoint();
  [[nodiscard]] bool should_exit() { return job_end_.should_exit(); }
  /// Adds to `expected` what the end of the job asks for.
  void create(std::string_view tag, const Attributes& attributes, Expected expected);
  void commit();
  std::optional<Tag> open(const Selection& selection, Newer newer, recovery::Reading reading);
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Local.
  void on_complete(std::string_view tag, Level level, pipeline::Completions::Callback callback) {
    comm::throw_if(lifecycle_.ended());
    pipeline_.on_complete(tag, level, std::move(callback));
  }
  /// Local, from any thread.
  [[nodiscard]] Counters counters() const;
  void wait(std::string_view tag, Level level);
  [[nodiscard]] bool wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most);
  void pin(std::string_view tag, bool pinned);
  /// `to_meet`: how long to wait for the others to come, if not as in every call.
  void finalize(std::optional<std::chrono::duration<double>> to_meet = {});
  [[nodiscard]] bool finalize_for(std::chrono::duration<double> at_most);

 private:
  void require_own_process() const;
  void check_stores();
  void mark_orderly_end() const;
  [[nodiscard]] std::optional<Failure> end_phase();
  void leave(const std::optional<Failure>& lost);
  void end_calls();
  void report_timeout(std::chrono::duration<double> after);
  [[nodiscard]] std::string describe_timeout(std::chrono::duration<double> after) const;
  [[nodiscard]] std::unique_ptr<pipeline::EventLog> make_event_log() const;
  [[nodiscard]] pipeline::Stages make_stages(std::vector<pipeline::StageWithPolicy> more);
  [[nodiscard]] pipeline::Pipeline make_pipeline(const EngineEnvironment& environment);
  [[nodiscard]] std::string run_to_name() const;
  [[nodiscard]] recovery::Recovery make_recovery();
  [[nodiscard]] OtherRanks other_ranks() const;
  /// Opens the prefixes of other runs.
  [[nodiscard]] recovery::SourceRecovery make_source_recovery();
  void log_experiments() const;
  [[nodiscard]] Writer::Uses writer_uses();
  [[nodiscard]] Reader::Uses reader_uses();
  [[nodiscard]] device::Staging::OnRefused not_registered() const;
  [[nodiscard]] pipeline::StopResult stop_worker();
  [[nodiscard]] device::DirectWrites::Settings direct_writes() const;
  void release_device();

  int exceptions_ = std::uncaught_exceptions();
  bool has_failed_ = false;  ///< a call has thrown, or the application said so
  Options options_;
  start::Environment environment_;
  Log log_;
  double begun_s_ = environment_.clock->seconds();
  std::function<int()> signal_;  ///< from the beginning on: a start may take long
  comm::Group group_;
  Lifecycle lifecycle_;
  start::StartResult started_;
  commits::Ledger ledger_;
  CommitMarkers markers_;
  StoreRecreation recreation_;
  pipeline::BackgroundPause pause_;
  pipeline::Metrics metrics_;
  pipeline::Pipeline pipeline_;
  recovery::Recovery recovery_;
  CheckpointSchedule schedule_;
  JobEnd job_end_;
  device::Staging staging_;
  std::shared_ptr<device::CopyPool> copies_;
  Writer writer_;
  Reader reader_;
  double create_begun_s_ = 0;  ///< the last one
};

}  // namespace kedge::engine
