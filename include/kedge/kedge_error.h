/** @file
 * What calls of Kedge's C interface return: see kedge.h, which includes this. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_ERROR_H
#define KEDGE_KEDGE_ERROR_H

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

/** What a call returns: 0, or the kind of failure, numbered as kedge::ErrorCode. */
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
  int rank;         /**< rank on which it happened, -1 if not a single rank's */
  int system_errno; /**< errno of the system call, or 0 */
  const char* text; /**< one line for people: code, rank, path and what to do; never NULL */
  const char* path; /**< the file concerned, or empty; never NULL */
} kedge_failure;

/** The code's name in lower case, e.g. "no_space", "ok"; "unknown" for any other number. Static storage. */
const char* kedge_error_name(kedge_error code);

/** The exit status for a program that this error ends: 75 if another attempt may succeed, 78 if it would fail the same
 * way; 0 for KEDGE_OK. */
int kedge_exit_status(kedge_error code);

/** The failure of this thread's last failed call, on any engine; as with errno, successful calls leave it unchanged.
 * It is Kedge's, never NULL, and valid until this thread's next call into Kedge or the thread's end. */
const kedge_failure* kedge_last_failure(void);

/** The text of kedge_last_failure(), e.g. to print before exiting. Never NULL. */
const char* kedge_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
