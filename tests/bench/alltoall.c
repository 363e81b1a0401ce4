/* The yardstick of a shuffle in `make bench`: MPI_Alltoallv and nothing else.
 *
 *   mpirun -n N alltoall BYTES SEGMENTS ROUNDS
 *
 * Each process has BYTES and sends as much of them to each process, itself too, in as many calls as there are SEGMENTS,
 * because counts have 32 bits. Prints the MiB/s of the median round that went from one process to another. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

static int me, count;
static char *from, *to;

static double round_of(long bytes, int segments)
{
    int part = (int)(bytes / count / segments), counts[MOST], places[MOST];
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int s = 0; s < segments; s++) {
        size_t at = (size_t)s * (size_t)part * (size_t)count;
        for (int i = 0; i < count; i++) {
            counts[i] = part;
            places[i] = i * part;
        }
        MPI_Alltoallv(from + at, counts, places, MPI_BYTE, to + at, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double took[MOST];
    setenv("OMPI_MCA_btl_tcp_eager_limit", "262144", 0); /* as couriers have it */
    setenv("OMPI_MCA_btl_tcp_max_send_size", "262144", 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    long bytes = argc == 4 ? atol(argv[1]) : 0;
    int segments = argc == 4 ? atoi(argv[2]) : 0, rounds = argc == 4 ? atoi(argv[3]) : 0;
    if (count < 2 || count > MOST || bytes < 1 || segments < 1 || rounds < 1 || rounds > MOST) {
        fprintf(stderr, "usage: mpirun -n N alltoall BYTES SEGMENTS ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    from = malloc((size_t)bytes);
    to = malloc((size_t)bytes);
    if (!from || !to)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(from, 1, (size_t)bytes);
    memset(to, 2, (size_t)bytes);
    for (int i = 0; i < rounds; i++)
        took[i] = round_of(bytes, segments);
    qsort(took, (size_t)rounds, sizeof *took, by_value);
    if (me == 0)
        printf("%.1f\n", (double)bytes * (count - 1) / took[rounds / 2] / 1048576);
    MPI_Finalize();
    free(from);
    free(to);
    return 0;
}
