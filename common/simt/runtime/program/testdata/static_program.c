/* Looks like a program with kernels and the CUDA runtime linked in. */
__attribute__((section(".nv_fatbin"))) static const volatile unsigned long long FATBIN[] = {
    0x00100001ba55ed50, 0};

int main(void) {
    return (int)FATBIN[1];
}
