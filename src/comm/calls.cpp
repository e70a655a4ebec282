#include "comm/calls.hpp"

namespace kedge::comm {

std::string_view to_string(Call call) noexcept {
  switch (call) {
    case Call::start: return "Engine()";
    case Call::need_checkpoint: return "need_checkpoint";
    case Call::create: return "create";
    case Call::commit: return "commit";
    case Call::abandon: return "abandon";
    case Call::open: return "open";
    case Call::close: return "close";
    case Call::finalize: return "finalize";
    case Call::wait: return "wait";
    case Call::wait_for: return "wait_for";
    case Call::pin: return "pin";
    case Call::should_exit: return "should_exit";
    case Call::finalize_for: return "finalize(at_most)";
    case Call::load_all: return "load_all";
    case Call::find_saved: return "restore (in Python: load_all)";
    case Call::verify_rest: return "restore";
  }
  return "unknown call";
}

std::uint64_t begin_call(const Group& group, Call call, std::uint64_t argument_hash,
                         const std::optional<Failure>& local, std::uint64_t payload) {
  return group.agree_on_call({static_cast<std::uint32_t>(call), argument_hash, payload}, local,
                             [](std::uint32_t code) { return to_string(static_cast<Call>(code)); });
}

}  // namespace kedge::comm
