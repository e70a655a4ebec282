/** @file
 * Kedge's C interface (C99), also for languages that can call C; kedge_mpi.h creates engines over MPI. The comments of
 * engine.hpp say more about each call. checkpoint, restore, committed, finalize_if_all_come and descriptions of struct
 * members exist only in C++.
 *
 * Calls marked COLLECTIVE must be made by all ranks in the same order; all others are local. Collective calls succeed
 * on all ranks or return the same error code on all, except for KEDGE_TIMEOUT and KEDGE_RANK_FAILED, which end the
 * engine and may reach only some ranks, and for a NULL engine and a NULL result of kedge_need_checkpoint,
 * kedge_should_exit and kedge_finalize_for, which only that rank reports. After KEDGE_TIMEOUT, KEDGE_RANK_FAILED,
 * KEDGE_DEVICE_FAILED, and KEDGE_BUSY because of a later start, every call that communicates, saves or loads returns
 * KEDGE_BAD_STATE. Make an engine's collective calls from one thread at a time; kedge_save, kedge_load, the routes,
 * kedge_get_level and kedge_get_counters may be called from several threads.
 *
 * Ownership: calls copy their arguments before they return. Functions named *_free accept NULL. Results are written to
 * the caller's memory, and only on success. No call throws, aborts or exits.
 *
 * Binary interface: kedge_engine and kedge_options are opaque; enumerator values are never reused; structs that the
 * caller allocates have reserved fields, so programs stay compatible when fields are added. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_H
#define KEDGE_KEDGE_H

#include <stddef.h>
#include <stdint.h>

#include "kedge/kedge_counters.h"

#if defined(__GNUC__)
#define KEDGE_MUST_CHECK __attribute__((warn_unused_result)) /* an ignored failure can cost a whole run */
#else
#define KEDGE_MUST_CHECK
#endif

#ifdef __cplusplus
#define KEDGE_AS_INT : int /* C passes any int */
extern "C" {
#else
#define KEDGE_AS_INT
#endif

/* Errors ------------------------------------------------------------------------------------------------------- */

/** Result of a call: 0, or the kind of failure, numbered as kedge::ErrorCode. */
typedef enum kedge_error KEDGE_AS_INT {
  KEDGE_OK = 0,               /**< no failure */
  KEDGE_INVALID_ARGUMENT = 1, /**< a bad value from the caller; the text names the field or the call */
  KEDGE_BAD_STATE = 2,        /**< the call is not allowed now (wrong order, ranks in different calls, dead engine) */
  KEDGE_NOT_FOUND = 3,        /**< no such tag, region or attribute */
  KEDGE_MISMATCH = 4,         /**< not what was saved (type, shape, input, run), or ranks disagree */
  KEDGE_NO_SPACE = 5,         /**< storage full, no inodes, no memory; the text gives needed and free */
  KEDGE_IO = 6,               /**< a system call failed; path and errno are given */
  KEDGE_CORRUPT = 7,          /**< stored bytes differ from what was written */
  KEDGE_UNRECOVERABLE = 8,    /**< checkpoints exist and none can be recovered */
  KEDGE_TIMEOUT = 9,          /**< a peer did not answer in time; the engine accepts no more calls */
  KEDGE_BUSY = 10,            /**< held by another process */
  KEDGE_RANK_FAILED = 11,     /**< a rank died, or communication with it failed; the engine accepts no more calls */
  KEDGE_DEVICE_FAILED = 12    /**< a GPU or its driver failed in a process; the engine accepts no more calls */
} kedge_error;

/** The last failure in the calling thread. */
typedef struct kedge_failure {
  kedge_error code; /**< KEDGE_OK if nothing has failed yet */
  int rank;         /**< rank on which it happened, or -1 */
  int system_errno; /**< errno of the system call, or 0 */
  const char* text; /**< one line for people: code, rank, path and what to do; never NULL */
  const char* path; /**< the file concerned, or empty; never NULL */
} kedge_failure;

/** The code's name in lower case, e.g. "no_space", "ok"; "unknown" for any other number. Static storage. */
const char* kedge_error_name(kedge_error code);

/** The exit status for a program that ends because of this error: 75 if another attempt may succeed, 78 if it would
 * fail the same way; 0 for KEDGE_OK. */
int kedge_exit_status(kedge_error code);

/** The failure of this thread's last failed call, on any engine; as with errno, successful calls leave it unchanged.
 * Kedge owns the result, which is never NULL and valid until this thread's next call into Kedge or the thread's end. */
const kedge_failure* kedge_last_failure(void);

/** The text of kedge_last_failure(), e.g. to print before exiting. Never NULL. */
const char* kedge_last_error(void);

/* Options ------------------------------------------------------------------------------------------------------ */

/** Options of an engine, made by kedge_options_load. */
typedef struct kedge_options kedge_options;

/** Loads defaults, then the configuration file (KEDGE_CONFIG, else ./kedge.toml), then environment variables.
 * kedge_engine_new reports the first error in them, on all ranks. Free the result with kedge_options_free.
 * KEDGE_INVALID_ARGUMENT (`options` is NULL), KEDGE_NO_SPACE (out of memory). */
KEDGE_MUST_CHECK kedge_error kedge_options_load(kedge_options** options);

/** Sets one option, e.g. ("store.path", "/local/{node}") or ("redundancy.every", "2"): names as in the
 * configuration file, values as in the environment. KEDGE_INVALID_ARGUMENT: no such option (the text suggests one), or
 * a bad value. kedge_engine_new also reports it, on all ranks, so the result may be ignored. */
kedge_error kedge_options_set(kedge_options* options, const char* name, const char* value);

/** Copies the option's value as NUL-terminated text, truncated to `size` bytes; `length`, if not NULL, receives the
 * length of the whole text without the NUL. `buffer` may be NULL if `size` is 0. KEDGE_INVALID_ARGUMENT: no such
 * option. */
kedge_error kedge_options_get(const kedge_options* options, const char* name, char* buffer, size_t size,
                              size_t* length);

/** Frees the options; NULL is accepted. */
void kedge_options_free(kedge_options* options);

/* The engine --------------------------------------------------------------------------------------------------- */

/** One run's checkpoint engine, created by kedge_engine_new (kedge_mpi.h). */
typedef struct kedge_engine kedge_engine;

/** COLLECTIVE. Waits for background work, flushes the newest commit if commits are flushed, and shuts the engine down
 * as store.on_exit says; afterwards every call that communicates, saves or loads returns KEDGE_BAD_STATE. If the newest
 * commit was a snapshot that is lost, keeps the node-local files and returns the error, unless kedge_wait has returned
 * it or KEDGE_DISCARD_NEWER gave the snapshot up. */
KEDGE_MUST_CHECK kedge_error kedge_finalize(kedge_engine* engine);

/** COLLECTIVE. Finalizes as kedge_finalize does, but waits for background work `seconds` at most, and 10 s more for a
 * write that has begun. `*done` becomes 1, or 0 on all ranks if any timed out, or if the newest commit could not be
 * flushed or was lost: the node-local files are then kept. A NULL `done` is reported on that rank alone. */
KEDGE_MUST_CHECK kedge_error kedge_finalize_for(kedge_engine* engine, double seconds, int* done);

/** Frees the engine. Never communicates, safe after MPI_Finalize; call kedge_finalize first to shut down in order. */
void kedge_engine_free(kedge_engine* engine);

/** COLLECTIVE. Sets `needed` to 1 on all ranks if a checkpoint is due, or the job must end and its last checkpoint was
 * not committed yet; else to 0. Only this rank reports a NULL `needed`. */
KEDGE_MUST_CHECK kedge_error kedge_need_checkpoint(kedge_engine* engine, int* needed);

/** COLLECTIVE. Sets `ending` to 1 on all ranks once the job must end, because any rank got a signal of exit.signals or
 * the deadline is near; else to 0. Call it after kedge_need_checkpoint, which then asks for a last checkpoint, and
 * after that checkpoint. Only this rank reports a NULL `ending`. */
KEDGE_MUST_CHECK kedge_error kedge_should_exit(kedge_engine* engine, int* ending);

/* Saving ------------------------------------------------------------------------------------------------------- */

enum {
  KEDGE_TAG_SIZE = 129,    /**< the longest tag with its terminating NUL */
  KEDGE_ID_SIZE = 33,      /**< 32 hex digits and the terminating NUL */
  KEDGE_PATH_SIZE = 4096,  /**< the longest path of a routed file with its terminating NUL */
  KEDGE_MAX_DIMENSIONS = 8 /**< of a region */
};

/** Element types. The numbers are on disk. */
typedef enum kedge_dtype KEDGE_AS_INT {
  KEDGE_INT8 = 1,
  KEDGE_INT16 = 2,
  KEDGE_INT32 = 3,
  KEDGE_INT64 = 4,
  KEDGE_UINT8 = 5,
  KEDGE_UINT16 = 6,
  KEDGE_UINT32 = 7,
  KEDGE_UINT64 = 8,
  KEDGE_FLOAT16 = 9,
  KEDGE_BFLOAT16 = 10,
  KEDGE_FLOAT32 = 11,
  KEDGE_FLOAT64 = 12,
  KEDGE_COMPLEX64 = 13,     /**< two KEDGE_FLOAT32 */
  KEDGE_COMPLEX128 = 14,    /**< two KEDGE_FLOAT64 */
  KEDGE_BOOL = 15,          /**< one byte, 0 or 1 */
  KEDGE_OPAQUE = 16,        /**< one uninterpreted byte */
  KEDGE_FLOAT8_E4M3FN = 17, /**< 4 exponent bits, 3 mantissa bits; one NaN for each sign, no infinity */
  KEDGE_FLOAT8_E5M2 = 18    /**< 5 exponent bits, 2 mantissa bits, as IEEE 754 would have it */
} kedge_dtype;

/** The type of an attribute's value. */
typedef enum kedge_attribute_type KEDGE_AS_INT {
  KEDGE_ATTRIBUTE_INT64 = 1,  /**< int64_t */
  KEDGE_ATTRIBUTE_DOUBLE = 2, /**< double, finite */
  KEDGE_ATTRIBUTE_STRING = 3  /**< UTF-8, NUL-terminated */
} kedge_attribute_type;

/** A small fact attached to a checkpoint; at most 64 KiB per checkpoint in total. */
typedef struct kedge_attribute {
  const char* key;           /**< UTF-8, 1 to 255 bytes */
  kedge_attribute_type type; /**< of the value */
  size_t count;              /**< numbers: how many, 1 is a scalar; strings: ignored */
  const void* value;         /**< the first number or character; NULL only if count is 0 */
} kedge_attribute;

/** How much a commit survives, in increasing order. */
typedef enum kedge_level KEDGE_AS_INT {
  KEDGE_LEVEL_NONE = 0,      /**< not committed */
  KEDGE_LEVEL_SNAPSHOT = 1,  /**< copied on the GPU only (device.snapshot); survives nothing */
  KEDGE_LEVEL_LOCAL = 2,     /**< on the node-local stores of all ranks; survives the death of processes */
  KEDGE_LEVEL_PROTECTED = 3, /**< survives the loss of a failure domain, and of more if the scheme allows */
  KEDGE_LEVEL_PERSISTENT = 4 /**< on the parallel filesystem; survives the allocation */
} kedge_level;

/** "none", "snapshot", "local", "protected", "persistent"; "unknown" for any other number. Static storage. */
const char* kedge_level_name(kedge_level level);

/** COLLECTIVE. Begins a checkpoint. `tag`: 1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot; "latest" is
 * reserved. `attributes` are `attribute_count` attributes, or NULL if there are none; only rank 0's are stored.
 * KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_NO_SPACE, KEDGE_IO. */
KEDGE_MUST_CHECK kedge_error kedge_create(kedge_engine* engine, const char* tag, const kedge_attribute* attributes,
                                          size_t attribute_count);

/** COLLECTIVE. Begins an output: data for people and other programs, such as a plot, which no restart opens and which
 * does not count as a checkpoint; see Engine::create_output. Every output is flushed to the prefix and never removed
 * from there. Otherwise as kedge_create. */
KEDGE_MUST_CHECK kedge_error kedge_create_output(kedge_engine* engine, const char* tag,
                                                 const kedge_attribute* attributes, size_t attribute_count);

/** Role of a region in the whole job. */
typedef enum kedge_placement KEDGE_AS_INT {
  KEDGE_PLACEMENT_OWN = 0,       /**< the rank's own */
  KEDGE_PLACEMENT_SHARD = 1,     /**< a block of a global array */
  KEDGE_PLACEMENT_REPLICATED = 2 /**< the same on every rank */
} kedge_placement;

/** Saves a region: the elements at `data`, in row-major order; `shape` has `dimensions` extents (0 for a scalar, at
 * most KEDGE_MAX_DIMENSIONS) in elements, slowest dimension first. The memory may be reused when the call returns.
 * `name` is UTF-8, 1 to 1024 bytes; `/` separates groups. The result may be ignored, because kedge_commit reports a
 * failure on all ranks; only when no checkpoint is being written does this call alone report it (KEDGE_BAD_STATE).
 * KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_NO_SPACE, KEDGE_IO. */
kedge_error kedge_save(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape);

/** As kedge_save, for a region that is the block at `offset` of a global array of `global_shape`, both with
 * `dimensions` entries. The blocks of all ranks must cover the array exactly once, unless `holes_allowed` is not 0:
 * then elements may be saved by no rank. */
kedge_error kedge_save_shard(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                             int dimensions, const uint64_t* shape, const uint64_t* global_shape,
                             const uint64_t* offset, int holes_allowed);

/** As kedge_save, for a region that has the same bytes on every rank that saves it: kedge_commit compares their
    checksums, and fails with KEDGE_MISMATCH if they differ. */
kedge_error kedge_save_replicated(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                                  int dimensions, const uint64_t* shape);

/** For applications that write files instead of memory: returns a path on the node-local store, and kedge_commit stores
 * the file written there as a region of this name. The path ends with `name`, e.g. "restart.bin" or "out/restart.3",
 * whose directories exist. All files that a rank routes in one checkpoint are in one private directory, which
 * kedge_commit and kedge_abandon remove with everything in it. A name that ends with '/' is a directory: everything
 * written below it is stored, each file as a region. Route each file once, and close it before kedge_commit, which
 * fails if the file, or the directory in all, exceeds `max_bytes`; 0 means no limit.
 * The path is NUL-terminated and never truncated: `size` should be KEDGE_PATH_SIZE. `length`, if not NULL,
 * receives its length without the NUL. kedge_commit also reports a failure, on all ranks; do not use the path then.
 * KEDGE_INVALID_ARGUMENT (also a name that cannot lie beside one routed before), KEDGE_BAD_STATE, KEDGE_NO_SPACE,
 * KEDGE_IO. */
KEDGE_MUST_CHECK kedge_error kedge_route_out(kedge_engine* engine, const char* name, uint64_t max_bytes, char* path,
                                             size_t size, size_t* length);

/** For interfaces to other languages: reports a region that could not be passed to kedge_save or kedge_load. This call
 * returns KEDGE_INVALID_ARGUMENT, and so does the next kedge_commit or kedge_close, on all ranks, with the name and the
 * reason. KEDGE_BAD_STATE when no checkpoint is being written or read. */
kedge_error kedge_refuse(kedge_engine* engine, const char* name, const char* reason);

/** COLLECTIVE. Seals the checkpoint on all ranks or on none, and reports the first failure since kedge_create. When it
 * returns KEDGE_OK, the commit survives the death of any processes; with device.snapshot it may return at
 * KEDGE_LEVEL_SNAPSHOT: sealed in the background, which may still fail. A protection or flush that fails leaves the
 * commit at its level and is not an error here. Errors: those of kedge_save and the routes; KEDGE_MISMATCH (blocks of a
 * global array that do not fit each other, ranks that disagree about a name); KEDGE_NOT_FOUND or KEDGE_INVALID_ARGUMENT
 * (routed files); KEDGE_NO_SPACE; KEDGE_IO. Earlier commits are unchanged then, and the next checkpoint may succeed.
 * After KEDGE_TIMEOUT or KEDGE_RANK_FAILED the next start finds the commit whole or not at all. */
KEDGE_MUST_CHECK kedge_error kedge_commit(kedge_engine* engine);

/** COLLECTIVE. Drops the checkpoint that kedge_create began. KEDGE_BAD_STATE if there is none. */
kedge_error kedge_abandon(kedge_engine* engine);

/** The level that the newest commit of this tag has reached, as far as this rank knows; KEDGE_LEVEL_NONE if it knows no
 * such commit. */
kedge_error kedge_get_level(const kedge_engine* engine, const char* tag, kedge_level* level);

/** Copies this rank's counters of the engine; without communication, also after kedge_finalize. */
kedge_error kedge_get_counters(const kedge_engine* engine, kedge_counters* counters);

/** COLLECTIVE. Returns when the newest commit of this tag has reached the level; protects or flushes it now if it was
 * not due yet, or if that failed. KEDGE_NOT_FOUND (no such commit is kept), KEDGE_INVALID_ARGUMENT (not a level, or one
 * that the options rule out), or the failure that prevents the level; the commit is then unchanged. */
KEDGE_MUST_CHECK kedge_error kedge_wait(kedge_engine* engine, const char* tag, kedge_level level);

/** COLLECTIVE. Waits as kedge_wait does, but for a commit that is pending in the background `seconds` at most.
 * `*reached` becomes 1, or 0 on all ranks if any timed out; the work then continues. Stages that were not due run in
 * the call, however long they take. */
KEDGE_MUST_CHECK kedge_error kedge_wait_for(kedge_engine* engine, const char* tag, kedge_level level, double seconds,
                                            int* reached);

/** Called when a commit has reached its level (KEDGE_OK, with a NULL `reason`) or never will (the error, with a line of
 * text that is valid during the call). Must not make collective calls. `context` is the caller's. */
typedef void (*kedge_on_complete_callback)(void* context, kedge_error outcome, const char* reason);

/** Calls `callback` once, when the newest commit of this tag has reached the level or cannot reach it: its stage
 * failed, a newer commit replaced it in the stores, or the engine was finalized. The application's thread calls it
 * within the next collective call that learns of it, on each rank independently; never if the engine is freed before,
 * or fails. KEDGE_NOT_FOUND: the stores have no commit of this tag; KEDGE_BAD_STATE: the engine was finalized or is
 * dead. */
KEDGE_MUST_CHECK kedge_error kedge_on_complete(kedge_engine* engine, const char* tag, kedge_level level,
                                               kedge_on_complete_callback callback, void* context);

/** COLLECTIVE. Pins the newest commit of this tag on the prefix: it stays there regardless of persistent.keep.
 * KEDGE_NOT_FOUND: no commit of this tag is on the prefix. */
KEDGE_MUST_CHECK kedge_error kedge_pin(kedge_engine* engine, const char* tag);

/** COLLECTIVE. Unpins the newest commit of this tag on the prefix. KEDGE_NOT_FOUND: no commit of this tag is there. */
KEDGE_MUST_CHECK kedge_error kedge_unpin(kedge_engine* engine, const char* tag);

/** Suspends this rank's background work until kedge_resume, to leave network and memory bandwidth to the program. The
 * work resumes by itself when a call waits for it, and after a quarter of comm.timeout_s per commit. While paused, do
 * not wait for a rank that may be in kedge_create. From any thread. */
kedge_error kedge_pause(kedge_engine* engine);

/** Resumes this rank's background work. From any thread. */
kedge_error kedge_resume(kedge_engine* engine);

/* Loading ------------------------------------------------------------------------------------------------------ */

/** How open treats commits newer than the one it opens. */
typedef enum kedge_newer KEDGE_AS_INT {
  KEDGE_KEEP_NEWER = 0,   /**< they stay candidates: opening the newest may return to them */
  KEDGE_DISCARD_NEWER = 1 /**< they are durably recorded as abandoned and never offered again */
} kedge_newer;

/** COLLECTIVE. Opens the newest commit of this tag that can be recovered on all ranks; a NULL tag or "latest" is the
 * newest of all. Sets `found` to 1, or to 0 if the run has no commit yet or none of this tag; kedge_get_info describes
 * the opened one. If a commit is damaged or incomplete, opens the next older one, and logs why. If another number of
 * ranks saved it, kedge_load_all loads it; open.other_ranks can refuse such commits. KEDGE_UNRECOVERABLE if commits
 * match but none can be recovered, KEDGE_IO if the prefix cannot be listed. */
KEDGE_MUST_CHECK kedge_error kedge_open(kedge_engine* engine, const char* tag, kedge_newer newer, int* found);

/** COLLECTIVE. As kedge_open, for the newest commit that is older than every commit of this tag; KEDGE_NOT_FOUND if
 * there are commits but none has the tag. */
KEDGE_MUST_CHECK kedge_error kedge_open_before(kedge_engine* engine, const char* tag, kedge_newer newer, int* found);

/** COLLECTIVE. As kedge_open, for another run's checkpoint, or a copied tag directory, as the starting point of a new
 * run: it is read in place. `prefix` is the directory that holds the tag directories; `run` the run whose tags to
 * consider, NULL or empty for any; `tag` as for kedge_open. KEDGE_NOT_FOUND, and not a `found` of 0, if there is none;
 * KEDGE_IO if its files are not trusted (persistent.trust). */
KEDGE_MUST_CHECK kedge_error kedge_open_source(kedge_engine* engine, const char* prefix, const char* run,
                                               const char* tag, int* found);

/** Bytes of one element; 0 for a number that is not a type. */
size_t kedge_dtype_size(kedge_dtype dtype);

/** Loads a region that this rank saved, and verifies every byte; type and shape must be the saved ones. Where another
 * number of ranks saved the checkpoint it is KEDGE_MISMATCH, and kedge_load_all (kedge_want.h) loads it. On failure the
 * memory's content is undefined, and kedge_close reports the first failure on all ranks. KEDGE_NOT_FOUND,
 * KEDGE_MISMATCH, KEDGE_CORRUPT, KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_IO. */
kedge_error kedge_load(kedge_engine* engine, const char* name, void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape);

/** Extracts a routed file, verifies every byte, and returns its path, which ends with `name` and is valid until
 * kedge_close. If the name ends with '/', extracts all files that this rank routed in that directory. For `path`,
 * `size` and `length` see kedge_route_out. kedge_close also reports a failure, on all ranks. KEDGE_NOT_FOUND,
 * KEDGE_MISMATCH (not a file: use kedge_load), KEDGE_CORRUPT, KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_NO_SPACE,
 * KEDGE_IO. */
KEDGE_MUST_CHECK kedge_error kedge_route_in(kedge_engine* engine, const char* name, char* path, size_t size,
                                            size_t* length);

/** COLLECTIVE. Closes the checkpoint and reports the first failure since kedge_open: use the loaded data only if it
 * returns KEDGE_OK. After KEDGE_CORRUPT, the next kedge_open, in this process or the next, rebuilds the checkpoint or
 * opens an older one from the stores (store.keep) or the prefix. C++'s Engine::restore does that by itself. In C, write
 * this loop, which also works on some ranks while C++ restores a State on others:
 *
 *     do {
 *       require(kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found));
 *       if (!found) return 0;
 *       (void)kedge_load(engine, "step", step, KEDGE_INT32, 0, NULL);
 *       code = kedge_close(engine);
 *     } while (code == KEDGE_CORRUPT);
 *     require(code);
 */
KEDGE_MUST_CHECK kedge_error kedge_close(kedge_engine* engine);

#ifdef __cplusplus
}
#endif

#include "kedge/kedge_info.h" /* these need what is above */
#include "kedge/kedge_want.h"

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
