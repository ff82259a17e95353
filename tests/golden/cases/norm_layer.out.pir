pir 1 ir_version=7 opset=12
graph g (x: f32[2,5,8]) -> (a, b, c, d, e, f) {
  gain = f32[8] {0.81367606, -0.77443665, -1.3993616, 1.0826283, -0.39422473, -0.16226733, -0.2361222, 1.1527083}
  shift = f32[8] {0.7880655, 1.434155, 1.4574859, -1.0303968, 1.2682765, -1.2191019, -0.8328434, 0.45125335}
  petopt_1 = f32[8] {-8.9874244e-05, 1.4117138, 0.2549794, 0.7781736, -0.35564622, -0.6506525, 0.87534666, 1.1220396}
  petopt_2 = f32[8] {0.0}
  petopt_4 = f32[8] {1.0}
  petopt_5 = f32[8] {0.0}
  petopt_9 = f32[8] {1.0}
  petopt_13 = f32[] {2.0}
  petopt_16 = f32[] {1e-05}
  petopt_24 = f32[] {2.0}
  petopt_27 = f32[] {1e-05}
  petopt_35 = f32[] {2.0}
  petopt_38 = f32[] {1e-05}
  petopt_46 = f32[] {2.0}
  petopt_49 = f32[] {1e-05}
  petopt_55 = f32[] {2.0}
  petopt_58 = f32[] {1e-05}
  petopt_63 = f32[] {2.0}
  petopt_66 = f32[] {1e-05}
  petopt_11 = ReduceMean(x) {axes=[2], keepdims=1} : f32[*] @ petopt_11
  petopt_12 = Sub(x, petopt_11) : f32[2,5,8] @ petopt_12
  petopt_14 = Pow(petopt_12, petopt_13: f32[]) : f32[2,5,8] @ petopt_14
  petopt_15 = ReduceMean(petopt_14) {axes=[2], keepdims=1} : f32[*] @ petopt_15
  petopt_17 = Add(petopt_15, petopt_16: f32[]) : f32[*] @ petopt_17
  petopt_18 = Sqrt(petopt_17) : f32[*] @ petopt_18
  petopt_19 = Div(petopt_12, petopt_18) : f32[2,5,8] @ petopt_19
  petopt_20 = Mul(petopt_19, gain: f32[8]) : f32[2,5,8] @ petopt_20
  a = Add(petopt_20, shift: f32[8]) : f32[2,5,8] @ petopt_21
  petopt_22 = ReduceMean(x) {axes=[2], keepdims=1} : f32[*] @ petopt_22
  petopt_23 = Sub(x, petopt_22) : f32[2,5,8] @ petopt_23
  petopt_25 = Pow(petopt_23, petopt_24: f32[]) : f32[2,5,8] @ petopt_25
  petopt_26 = ReduceMean(petopt_25) {axes=[2], keepdims=1} : f32[*] @ petopt_26
  petopt_28 = Add(petopt_26, petopt_27: f32[]) : f32[*] @ petopt_28
  petopt_29 = Sqrt(petopt_28) : f32[*] @ petopt_29
  petopt_30 = Div(petopt_23, petopt_29) : f32[2,5,8] @ petopt_30
  petopt_31 = Mul(petopt_30, petopt_1: f32[8]) : f32[2,5,8] @ petopt_31
  b = Add(petopt_31, petopt_2: f32[8]) : f32[2,5,8] @ petopt_32
  petopt_33 = ReduceMean(x) {axes=[2], keepdims=1} : f32[*] @ petopt_33
  petopt_34 = Sub(x, petopt_33) : f32[2,5,8] @ petopt_34
  petopt_36 = Pow(petopt_34, petopt_35: f32[]) : f32[2,5,8] @ petopt_36
  petopt_37 = ReduceMean(petopt_36) {axes=[2], keepdims=1} : f32[*] @ petopt_37
  petopt_39 = Add(petopt_37, petopt_38: f32[]) : f32[*] @ petopt_39
  petopt_40 = Sqrt(petopt_39) : f32[*] @ petopt_40
  petopt_41 = Div(petopt_34, petopt_40) : f32[2,5,8] @ petopt_41
  petopt_42 = Mul(petopt_41, petopt_4: f32[8]) : f32[2,5,8] @ petopt_42
  c = Add(petopt_42, petopt_5: f32[8]) : f32[2,5,8] @ petopt_43
  petopt_44 = ReduceMean(x) {axes=[2], keepdims=1} : f32[*] @ petopt_44
  petopt_45 = Sub(x, petopt_44) : f32[2,5,8] @ petopt_45
  petopt_47 = Pow(petopt_45, petopt_46: f32[]) : f32[2,5,8] @ petopt_47
  petopt_48 = ReduceMean(petopt_47) {axes=[2], keepdims=1} : f32[*] @ petopt_48
  petopt_50 = Add(petopt_48, petopt_49: f32[]) : f32[*] @ petopt_50
  petopt_51 = Sqrt(petopt_50) : f32[*] @ petopt_51
  petopt_52 = Div(petopt_45, petopt_51) : f32[2,5,8] @ petopt_52
  petopt_53 = Mul(petopt_52, gain: f32[8]) : f32[2,5,8] @ petopt_53
  d = Add(petopt_53, shift: f32[8]) : f32[2,5,8] @ petopt_54
  petopt_56 = Pow(x, petopt_55: f32[]) : f32[2,5,8] @ petopt_56
  petopt_57 = ReduceMean(petopt_56) {axes=[2], keepdims=1} : f32[*] @ petopt_57
  petopt_59 = Add(petopt_57, petopt_58: f32[]) : f32[*] @ petopt_59
  petopt_60 = Sqrt(petopt_59) : f32[*] @ petopt_60
  petopt_61 = Div(x, petopt_60) : f32[2,5,8] @ petopt_61
  e = Mul(petopt_61, gain: f32[8]) : f32[2,5,8] @ petopt_62
  petopt_64 = Pow(x, petopt_63: f32[]) : f32[2,5,8] @ petopt_64
  petopt_65 = ReduceMean(petopt_64) {axes=[2], keepdims=1} : f32[*] @ petopt_65
  petopt_67 = Add(petopt_65, petopt_66: f32[]) : f32[*] @ petopt_67
  petopt_68 = Sqrt(petopt_67) : f32[*] @ petopt_68
  petopt_69 = Div(x, petopt_68) : f32[2,5,8] @ petopt_69
  f = Mul(petopt_69, petopt_9: f32[8]) : f32[2,5,8] @ petopt_70
}
