/* A library that is none. */
int fake_broken(void);
__attribute__((visibility("default"))) int fake_broken(void) {
    return 0;
}
