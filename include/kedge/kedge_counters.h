/** @file
 * What an engine has done, in numbers: kedge_get_counters of kedge.h. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_COUNTERS_H
#define KEDGE_KEDGE_COUNTERS_H

#include <stdint.h>

/** Since the engine was created, on this rank. Bytes are those of this rank's own containers. Times are seconds:
 * `blocked` is how long the application waited in the calls from kedge_create to kedge_commit, not counting the
 * time kedge_save waits for GPU work that was already submitted; the others are how long after its commit a checkpoint
 * reached the level, if it was due then.
 */
typedef struct kedge_counters {
  uint64_t commits;            /**< checkpoints that were committed */
  uint64_t commits_failed;     /**< checkpoints that kedge_create or kedge_commit gave up */
  uint64_t protections;        /**< commits that became protected */
  uint64_t protections_failed; /**< attempts that failed */
  uint64_t flushes;            /**< commits that became persistent */
  uint64_t flushes_failed;     /**< commits of which the flush failed, after the last retry */
  uint64_t flush_retries;      /**< flushes that were tried again (persistent.retries) */
  uint64_t retired;            /**< commits that left the node-local stores */
  uint64_t opens;              /**< checkpoints that were opened */
  uint64_t pending;            /**< commits under way in the background now */
  uint64_t saved_bytes;        /**< committed */
  uint64_t protected_bytes;    /**< of commits that became protected */
  uint64_t flushed_bytes;      /**< of commits that became persistent */
  uint64_t fetched_bytes;      /**< read back from the prefix by kedge_open */
  double blocked_s;            /**< by all commits together */
  double blocked_last_s;       /**< by the last commit */
  double protected_last_s;     /**< until the last one that became protected was */
  double protected_max_s;      /**< the longest of these */
  double persistent_last_s;    /**< until the last one that became persistent was */
  double persistent_max_s;     /**< the longest of these */
  uint64_t reserved[12];       /**< zero */
} kedge_counters;

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
