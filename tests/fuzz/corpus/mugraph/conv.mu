mugraph conv {
  label y 56
  label x 56
  label c 64
  label r 3
  label s 3
  label b 1
  label k 64
  tensor X input 0 [64, 56, 56]
  tensor W weight 0 [1, 64, 3, 3, 64]
  tensor bias weight 1 [64]
  tensor A device [56, 56, 64] before [1, 1, 0] after [1, 1, 0] stride [3712, 64, 1]
  tensor Y output 0 [64, 56, 56]
  step "channels last" {
    grid y by 8 {
      A[y, x, c] = X[c, y, x]
    }
  }
  step "conv 3x3" {
    grid y by 4 {
      register P [56, 56, 64]
      P[y, x, 64*b+k] += A[y+r-1, x+s-1, c] * W[b, c, r, s, k] fresh tile x*7 k*4 order b y r s c
      Y[64*b+k, y, x] = max(P[y, x, 64*b+k] + bias[64*b+k], 0) fused
    }
  }
}
