/* Switching stacks: by hand on x86-64, a few nanoseconds; by ucontext elsewhere. */
#include "emulator_private.h"

#if defined(__x86_64__)

void emu_fiber_enter(void);

__asm__(".text\n"
        ".globl emu_fiber_switch\n"
        ".hidden emu_fiber_switch\n"
        ".type emu_fiber_switch, @function\n"
        "emu_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size emu_fiber_switch, . - emu_fiber_switch\n");

void *emu_fiber_new(unsigned char *stack, size_t size, void (*start)(void)) {
    void **top = (void **)(void *)(stack + size);
    *--top = NULL; /* as after a call: the stack is 8 beyond a multiple of 16 */
    *--top = (void *)(uintptr_t)start;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    return top;
}

#else

#include <stdlib.h>
#include <ucontext.h>

/* The "stack pointer" is the context. The scheduler's is made at its first switch. */
void *emu_fiber_new(unsigned char *stack, size_t size, void (*start)(void)) {
    ucontext_t *c = (ucontext_t *)(void *)stack; /* at the stack's far end */
    size_t room = (sizeof *c + 63) / 64 * 64;
    (void)getcontext(c);
    c->uc_stack.ss_sp = stack + room;
    c->uc_stack.ss_size = size - room;
    c->uc_link = NULL;
    makecontext(c, start, 0);
    return c;
}

void emu_fiber_switch(void **from, void *to) {
    static ucontext_t scheduler;
    ucontext_t *here = *from ? (ucontext_t *)*from : &scheduler;
    *from = here;
    (void)swapcontext(here, (ucontext_t *)to);
}

#endif
