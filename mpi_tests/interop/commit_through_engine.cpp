// mpirun -n 8 commit_through_engine commit|load: the pieces that read_manifest.py knows, through the engine. `commit`
// makes one commit of them; `load` opens the newest and loads item by item, in an order other than they were saved in.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "interop/known_pieces.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

using namespace kedge;
using kedge::testing::bytes_of;
using kedge::testing::Piece;

std::vector<Piece> pieces_of(int rank) {
  std::vector<Piece> mine;
  for (const Piece& piece : kedge::testing::known_pieces()) {
    if (piece.rank == static_cast<std::uint32_t>(rank)) mine.push_back(piece);
  }
  return mine;
}

void commit(Engine& engine, const std::vector<Piece>& mine) {
  engine.create(kedge::testing::kKnownTag, kedge::testing::known_attributes());
  for (const Piece& piece : mine) {
    const std::vector<std::byte> bytes = bytes_of(piece.spec);
    engine.save(piece.spec.name, {bytes.data(), piece.spec.dtype, piece.spec.shape}, piece.spec.placement);
  }
  engine.commit();
  engine.wait(kedge::testing::kKnownTag, Level::persistent);
  if (engine.level(kedge::testing::kKnownTag) != Level::persistent) throw std::runtime_error("it is not persistent");
}

bool comes_back(Engine& engine, const Piece& piece) {
  const std::vector<std::byte> wanted = bytes_of(piece.spec);
  std::vector<std::byte> bytes(wanted.size());
  return engine.load(piece.spec.name, {bytes.data(), piece.spec.dtype, piece.spec.shape}).ok() && bytes == wanted;
}

/// Each in a visit of its own: the others are not touched. A rank that has no such item loads nothing.
void load_alone(Engine& engine, const std::vector<Piece>& mine, const std::string& name) {
  if (!engine.open()) throw std::runtime_error("nothing is there");
  for (const Piece& piece : mine) {
    if (piece.spec.name == name && !comes_back(engine, piece)) throw std::runtime_error(name + " did not come back");
  }
  engine.close();
}

void load_all(Engine& engine, std::vector<Piece> mine) {
  std::reverse(mine.begin(), mine.end());
  if (!engine.open()) throw std::runtime_error("nothing is there");
  if (engine.info().attributes != kedge::testing::known_attributes()) throw std::runtime_error("other attributes");
  for (const Piece& piece : mine) {
    if (!comes_back(engine, piece)) throw std::runtime_error(piece.spec.name + " did not come back");
  }
  engine.close();
}

void run(const std::string& what) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != static_cast<int>(kedge::testing::kKnownRanks) || (what != "commit" && what != "load")) {
    throw std::runtime_error("usage: mpirun -n 8 commit_through_engine commit|load");
  }
  const std::vector<Piece> mine = pieces_of(rank);
  Engine engine(mpi(MPI_COMM_WORLD), Options::load());
  if (what == "commit") {
    commit(engine, mine);
  } else {
    load_alone(engine, mine, "particles");
    if (rank == 0) std::printf("loaded from %s\n", std::string(to_string(engine.info().source)).c_str());
    load_alone(engine, mine, "constants/seed");
    load_alone(engine, mine, "field/complex64");
    load_all(engine, mine);
  }
  engine.finalize();
}

}  // namespace

int main(int count, char** arguments) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
  try {
    run(count == 2 ? arguments[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
