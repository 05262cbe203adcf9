/* os.h: clock, processor count, where the library lies. Layer 0. */
#ifndef XTI_BASE_OS_H
#define XTI_BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

int64_t xti_ns_of(struct timespec t);
int64_t xti_now_ns(void);    /* monotonic */
int64_t xti_thread_ns(void); /* processor time of the calling thread */
int xti_cpu_count(void);     /* processors this process may run on, at least 1 */

/* A file of so many bytes is longer than RLIMIT_FSIZE: writing it would end the host by SIGXFSZ, where its
 * thread does not block it. */
bool xti_file_exceeds(uint64_t bytes);

/* Of a thread that needs so many itself: the C library puts thread-local variables of the program and its
 * libraries into the same stack. */
size_t xti_stack_bytes(size_t own);

/* Starts a thread that needs so many bytes of stack itself. Signals stay with the threads that the program
 * made: it takes none, or, takes_faults, those of faults alone, which blocked would end the process. 0, or
 * errno. */
int xti_thread_start(pthread_t *id, size_t own, bool takes_faults, void *(*run)(void *), void *arg);

/* The path of a file, given from the directory of the library, or of the program that has it inside. false:
 * it does not fit, or the directory is not known. */
bool xti_path_beside(const char *file, char *path, size_t size);

#endif
