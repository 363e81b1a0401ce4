/* A server that never serves: a program to be upgraded to. */
#include <unistd.h>

int main(void)
{
    for (;;)
        pause();
}
