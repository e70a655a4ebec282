/** @file
 * Queries of the open checkpoint. kedge.h includes this. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_INFO_H
#define KEDGE_KEDGE_INFO_H

#include "kedge/kedge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where an opened checkpoint came from: the costliest source that any rank needed. */
typedef enum kedge_source KEDGE_AS_INT {
  KEDGE_SOURCE_IN_PLACE = 0, /**< the node-local stores */
  KEDGE_SOURCE_MOVED = 1,    /**< the stores of other nodes */
  KEDGE_SOURCE_REBUILT = 2,  /**< redundancy sets */
  KEDGE_SOURCE_FETCHED = 3   /**< the parallel filesystem */
} kedge_source;

/** "in place", "moved", "rebuilt", "fetched"; "unknown" for any other number. Static storage. */
const char* kedge_source_name(kedge_source source);

/** A checkpoint that was opened. */
typedef struct kedge_info {
  char tag[KEDGE_TAG_SIZE];             /**< its name */
  char commit_id[KEDGE_ID_SIZE];        /**< unique */
  char parent_commit_id[KEDGE_ID_SIZE]; /**< zeros for the first of its lineage */
  kedge_source source;                  /**< where it came from */
  uint32_t world_size;                  /**< ranks that saved it */
  uint32_t logical_rank;                /**< of the container that this process loads */
  uint64_t generation;                  /**< the order of commits */
  uint64_t incarnation;                 /**< of the start that made it */
  uint64_t total_bytes;                 /**< container bytes of all ranks */
  int64_t time_ns;                      /**< creation time, since 1970-01-01 UTC */
  size_t attribute_count;               /**< how many attributes it has */
  uint64_t is_output;                   /**< 1 if kedge_create_output began it, else 0 */
  uint64_t reserved[7];                 /**< zero */
} kedge_info;

/** The checkpoint that is open, or was opened last. KEDGE_BAD_STATE if there was none. */
kedge_error kedge_get_info(const kedge_engine* engine, kedge_info* info);

/** Copies an attribute of the open checkpoint: up to `capacity` numbers to `values` (may be NULL if `capacity` is 0);
 * `count`, if not NULL, receives how many there are. KEDGE_NOT_FOUND: no such key; KEDGE_MISMATCH: it has another type
 * (the text says which); KEDGE_BAD_STATE. */
kedge_error kedge_get_attribute_int64(const kedge_engine* engine, const char* key, int64_t* values, size_t capacity,
                                      size_t* count);
/** As kedge_get_attribute_int64, for an attribute of doubles. */
kedge_error kedge_get_attribute_double(const kedge_engine* engine, const char* key, double* values, size_t capacity,
                                       size_t* count);
/** As kedge_get_attribute_int64, for a string: NUL-terminated, truncated to `size` bytes; `length`, if not NULL,
 * receives the length of the whole string without the NUL. */
kedge_error kedge_get_attribute_string(const kedge_engine* engine, const char* key, char* buffer, size_t size,
                                       size_t* length);

/** One region of this rank's part of the open checkpoint. */
typedef struct kedge_region {
  const char* name;                            /**< owned by the engine, valid until kedge_close */
  uint64_t size_bytes;                         /**< on this rank */
  kedge_dtype dtype;                           /**< of one element */
  kedge_placement placement;                   /**< in the whole job */
  int dimensions;                              /**< how many extents `shape` has */
  int routed;                                  /**< 1: a file, for kedge_route_in */
  uint64_t shape[KEDGE_MAX_DIMENSIONS];        /**< on this rank, in elements */
  uint64_t global_shape[KEDGE_MAX_DIMENSIONS]; /**< of a shard, else zero */
  uint64_t offset[KEDGE_MAX_DIMENSIONS];       /**< of a shard, else zero */
  uint64_t reserved[8];                        /**< zero */
} kedge_region;

/** The number of regions of the open checkpoint on this rank. This call and the next two describe regions, e.g. to
 * allocate memory before kedge_load. KEDGE_BAD_STATE: no checkpoint is open; KEDGE_MISMATCH: another number of ranks
 * saved it; KEDGE_NOT_FOUND: no such index or name. */
kedge_error kedge_region_count(const kedge_engine* engine, size_t* count);
/** Describes a region by its index, from 0. */
kedge_error kedge_get_region(const kedge_engine* engine, size_t index, kedge_region* region);
/** Describes a region by its name. */
kedge_error kedge_find_region(const kedge_engine* engine, const char* name, kedge_region* region);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
