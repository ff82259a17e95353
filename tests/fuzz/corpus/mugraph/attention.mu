mugraph attention {
  label i 8
  label j 24
  label d 4
  label e 4
  tensor Q input 0 [8, 4]
  tensor K input 1 [24, 4]
  tensor V input 2 [24, 4]
  tensor O output 0 [8, 4]
  step "attention" {
    grid i by 4 {
      shared m [8]
      shared l [8]
      shared acc [8, 4]
      m[i] = -inf
      l[i] = 0
      acc[i, e] = 0
      for j by 8 {
        shared s [8, 24]
        shared old [8]
        s[i, j] += Q[i, d] * K[j, d] fresh
        old[i] = m[i]
        m[i] max= s[i, j]
        l[i] = l[i] * exp(old[i] - m[i])
        acc[i, e] = acc[i, e] * exp(old[i] - m[i])
        l[i] += exp(s[i, j] - m[i])
        acc[i, e] += exp(s[i, j] - m[i]) * V[j, e]
      }
      O[i, e] = acc[i, e] / l[i]
    }
  }
}
