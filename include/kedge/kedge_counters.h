/** @file
 * Counters of an engine: see kedge_get_counters of kedge.h. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_COUNTERS_H
#define KEDGE_KEDGE_COUNTERS_H

#include <stdint.h>

/** What an engine has done since it was created, as this rank knows it. Bytes are of this rank's own containers. Times
 * are in seconds: `blocked` is the application's waiting time in kedge_create to kedge_commit, without the time that
 * kedge_save waits for GPU work already submitted; the others are times from a commit until it reached the level, for
 * commits that were due there. */
typedef struct kedge_counters {
  uint64_t commits;            /**< checkpoints that were committed */
  uint64_t commits_failed;     /**< checkpoints that failed in kedge_create or kedge_commit */
  uint64_t protections;        /**< commits that became protected */
  uint64_t protections_failed; /**< attempts that failed */
  uint64_t flushes;            /**< commits that became persistent */
  uint64_t flushes_failed;     /**< commits whose flush failed, after the last retry */
  uint64_t flush_retries;      /**< retries of failed flushes (persistent.retries) */
  uint64_t retired;            /**< commits that left the node-local stores */
  uint64_t opens;              /**< checkpoints that were opened */
  uint64_t pending;            /**< commits now pending in the background */
  uint64_t saved_bytes;        /**< committed */
  uint64_t protected_bytes;    /**< of commits that became protected */
  uint64_t flushed_bytes;      /**< of commits that became persistent */
  uint64_t fetched_bytes;      /**< fetched from the prefix by kedge_open */
  double blocked_s;            /**< by all commits together */
  double blocked_last_s;       /**< by the last commit */
  double protected_last_s;     /**< of the last commit that became protected */
  double protected_max_s;      /**< the longest of these */
  double persistent_last_s;    /**< of the last commit that became persistent */
  double persistent_max_s;     /**< the longest of these */
  uint64_t reserved[12];       /**< zero */
} kedge_counters;

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
