// Where other ranks knock.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <list>
#include <vector>

#include "comm/sockets/connections.hpp"
#include "comm/sockets/frame.hpp"
#include "comm/sockets/socket.hpp"

namespace kedge::comm {

/// Accepts connections, and lets those in that greet with the token of the job. Whatever else connects is closed: at
/// once if it says something else, soon if it says nothing, sooner if there are many.
class ConnectionAcceptor {
 public:
  /// Connections that have not greeted yet.
  static constexpr std::size_t kUnknownMax = 64;
  static constexpr std::chrono::seconds kGreetingLimit{5};

  /// `rank` is this one's, of `size`.
  ConnectionAcceptor(Socket listener, int rank, int size, const Id128& token, const Id128& welcome);

  struct AcceptedRank {
    Socket socket;
    int from = 0;
  };
  /// Ranks that have greeted since the last call. A rank may be admitted that is connected already.
  [[nodiscard]] std::vector<AcceptedRank> progress(SocketTime now);

  void add_poll_events(std::vector<::pollfd>& polled, SocketTime now) const;  ///< what to poll for
  /// Whether progress may have something to do without an event.
  [[nodiscard]] bool needs_progress(SocketTime now) const noexcept { return !unknown_.empty() || now < rests_until_; }

 private:
  struct UnidentifiedConnection {
    Socket socket;
    SocketTime since;
    std::array<std::byte, sizeof(Greeting)> greeting{};
    std::size_t bytes = 0;
  };
  enum class Reading : std::uint8_t { more, admitted, refused };

  void accept(SocketTime now);
  [[nodiscard]] Reading read(UnidentifiedConnection& unknown) const;
  [[nodiscard]] bool is_from_job(const Greeting& greeting) const;

  Socket listener_;
  int rank_;
  int size_;
  Id128 token_;
  Id128 welcome_;
  std::list<UnidentifiedConnection> unknown_;  ///< the oldest first
  SocketTime rests_until_{};                   ///< when the system had no descriptors left
};

}  // namespace kedge::comm
