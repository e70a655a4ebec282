// One engine: the context, and the two sides that work in it.
#pragma once

#include <memory>

#include "engine/context.hpp"
#include "engine/reader.hpp"
#include "engine/writer.hpp"
#include "kedge/engine.hpp"

namespace kedge::engine {

class EngineImpl {
 public:
  /// COLLECTIVE.
  EngineImpl(std::unique_ptr<Communicator> communicator, Options options, Environment environment);

  bool need_checkpoint();
  void finalize();

  Context context;
  Writer writer;
  Reader reader;

 private:
  void leave_store();
  void remove_on_purpose();
  std::uint64_t need_checkpoint_calls_ = 0;
};

}  // namespace kedge::engine
