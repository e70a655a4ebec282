// C calls that select the stream for GPU memory.
#include "kedge/kedge_device.h"

#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"

using namespace kedge;

extern "C" {

kedge_error kedge_set_stream(kedge_engine* engine, void* stream) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_set_stream");
  engine->stream = DeviceStream{stream};
  return KEDGE_OK;
}

kedge_error kedge_unset_stream(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_unset_stream");
  engine->stream.reset();
  return KEDGE_OK;
}

}  // extern "C"
