/* What benchmarks measure and report. */
#ifndef TESTS_BENCH_MEDIAN_H
#define TESTS_BENCH_MEDIAN_H

#include <stdlib.h>
#include <time.h>

/* Nanoseconds by that clock. */
static inline double worked(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

#endif
