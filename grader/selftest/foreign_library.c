/* Stands for a vendor's library that a submission loads. */
int foreign_library_version(void);

int foreign_library_version(void) {
    return 1;
}
