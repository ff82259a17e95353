mugraph "odd name" { # all parts
  label i 5 label j 3 label k 32
  tensor T table [3, 2] {1, -1/2, 0, 2/3, 1, 9}
  tensor "a b" input 0 [5, 2]
  tensor x/y.1 device [5, 3] before [1, 2] after [0, 1] fill -inf stride [8, 1]
  tensor Y output 0 [5, 3, 32]
  step "one \"two\"" {
    for i by 2 {
      register "order" [3]
      "order"[j] += -T[j, 0] * "a b"[i, 1] - (e1 := exp(1.5)) / e1 + choose(less(e1, 2), pow(e1, inf), -inf) fresh
      x/y.1[i-1, 2*j-4] = max("order"[j], 0) order i j
    }
  }
  step "" {
    lanes k { Y[i, j, k] max= x/y.1[-i+2, j] fresh tile i*2 k*1 order j }
    Y[i, j, k] = Y[i, j, k] tile i*3 - fused
  }
}
