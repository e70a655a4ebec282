#include <exception>
#include <iostream>

#include "job.hpp"
#include "kedge/transport.hpp"

namespace heat_cuda {

int run_job(int /*argc*/, char** /*argv*/, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "heat_cuda: " << error.what() << '\n';
    return 1;
  }
}

std::unique_ptr<kedge::Communicator> communicator() { return kedge::single_process(); }

Place place() { return {}; }

std::string first_of_all(const Place& /*place*/, const std::string& text) { return text; }

void exchange_rows(const Place& /*place*/, std::size_t /*columns*/, const double* /*first*/, const double* /*last*/,
                   double* /*above*/, double* /*below*/) {}

std::uint64_t in_turn(const Place& /*place*/, std::uint64_t begin,
                      const std::function<std::uint64_t(std::uint64_t)>& next) {
  return next(begin);
}

}  // namespace heat_cuda
