/* Stands for a library of NVIDIA, of which only the name counts here. */
int host_library(void);

int host_library(void) {
    return 0;
}
