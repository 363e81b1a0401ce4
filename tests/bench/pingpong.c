/* The yardstick of remote reads in `make bench`: MPI and nothing else.
 *
 *   mpirun -n 2 pingpong SIZE DEPTH SECONDS
 *
 * One process asks with 40 bytes and the other answers with SIZE bytes; DEPTH questions are on their way at any time,
 * each answer is received into a buffer of its own, posted before it is asked for. Both look for messages all the time,
 * which a courier does not. Prints how many answers came a second and the processor time that one cost, of both
 * together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { QUESTION = 40, TAG_QUESTION = 1, TAG_ANSWER = 1024, MOST = 1024 };

static int size, depth;
static double seconds;
static char *buffer, question[MOST][QUESTION];
static MPI_Request request[2 * MOST];

static double processor_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static char *slot(int i)
{
    return buffer + (size_t)i * (size_t)size;
}

static void ask(int i, int stop)
{
    MPI_Request sent;
    memcpy(question[i], &i, sizeof i);
    memcpy(question[i] + sizeof i, &stop, sizeof stop);
    if (!stop)
        MPI_Irecv(slot(i), size, MPI_BYTE, 1, TAG_ANSWER + i, MPI_COMM_WORLD, &request[i]);
    MPI_Isend(question[i], QUESTION, MPI_BYTE, 1, TAG_QUESTION, MPI_COMM_WORLD, &sent);
    MPI_Request_free(&sent);
}

static long ask_all(void)
{
    double end = MPI_Wtime() + seconds;
    int index[MOST], came = 0;
    long answers = 0;
    for (int i = 0; i < depth; i++)
        ask(i, 0);
    while (MPI_Wtime() < end) {
        MPI_Testsome(depth, request, &came, index, MPI_STATUSES_IGNORE);
        for (int i = 0; i < came; i++)
            ask(index[i], 0);
        answers += came;
    }
    MPI_Waitall(depth, request, MPI_STATUSES_IGNORE);
    ask(0, 1);
    return answers;
}

/* The requests of answers stand behind those of questions. */
static void answer_all(void)
{
    int index[2 * MOST], came = 0, stop = 0;
    for (int i = 0; i < depth; i++) {
        MPI_Irecv(question[i], QUESTION, MPI_BYTE, 0, TAG_QUESTION, MPI_COMM_WORLD, &request[i]);
        request[MOST + i] = MPI_REQUEST_NULL;
    }
    while (!stop) {
        MPI_Testsome(MOST + depth, request, &came, index, MPI_STATUSES_IGNORE);
        for (int i = 0; i < came; i++) {
            int from = index[i], which;
            if (from >= MOST)
                continue;
            memcpy(&which, question[from], sizeof which);
            memcpy(&stop, question[from] + sizeof which, sizeof stop);
            if (stop)
                return;
            MPI_Wait(&request[MOST + which], MPI_STATUS_IGNORE); /* it was received, so this does not wait long */
            MPI_Isend(slot(which), size, MPI_BYTE, 0, TAG_ANSWER + which, MPI_COMM_WORLD, &request[MOST + which]);
            MPI_Irecv(question[from], QUESTION, MPI_BYTE, 0, TAG_QUESTION, MPI_COMM_WORLD, &request[from]);
        }
    }
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_btl_tcp_eager_limit", "262144", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "262144", 0);
    setenv("OMPI_MCA_btl_vader_eager_limit", "262144", 0);
    setenv("OMPI_MCA_btl_vader_segment_size", "16777216", 0);
    MPI_Init(&argc, &argv);
    int me, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    size = argc == 4 ? atoi(argv[1]) : 0;
    depth = argc == 4 ? atoi(argv[2]) : 0;
    seconds = argc == 4 ? atof(argv[3]) : 0;
    if (count != 2 || size < 1 || depth < 1 || depth > MOST || seconds <= 0) {
        fprintf(stderr, "usage: mpirun -n 2 pingpong SIZE DEPTH SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < 2 * MOST; i++)
        request[i] = MPI_REQUEST_NULL;
    buffer = malloc((size_t)depth * (size_t)size);
    memset(buffer, 1, (size_t)depth * (size_t)size);
    MPI_Barrier(MPI_COMM_WORLD);
    double used = -processor_time(), both = 0;
    long answers = 0;
    if (me == 0)
        answers = ask_all();
    else
        answer_all();
    used += processor_time();
    MPI_Reduce(&used, &both, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%.0f answers/s, %.1f us of processor time each\n", (double)answers / seconds,
               1e6 * both / (double)answers);
    MPI_Finalize();
    free(buffer);
    return 0;
}
